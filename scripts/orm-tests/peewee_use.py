"""peewee with its own reflection and migrations. usage: peewee_use.py URL"""

import datetime as dt, decimal, sys, uuid, io, contextlib
from peewee import *
from playhouse.postgres_ext import *
from playhouse.db_url import connect
from playhouse.migrate import PostgresqlMigrator, migrate
from playhouse.reflection import Introspector, generate_models, print_model
from playhouse.pool import PooledPostgresqlDatabase

URL = sys.argv[1]
db = PostgresqlExtDatabase(URL)


def t(name, f):
    try:
        print(name, repr(f())[:1500])
    except Exception as e:
        print(name, "ERR", type(e).__name__, str(e)[:300].replace("\n", " | "))
        if not db.is_closed():
            db.rollback()


class Base(Model):
    class Meta:
        database = db


class User(Base):
    name = CharField(max_length=40, unique=True)
    age = IntegerField(index=True, constraints=[Check("age > 0")], default=1)
    born = DateField(null=True)
    made = DateTimeField(default=dt.datetime(2020, 1, 2))
    made_z = DateTimeTZField(null=True)
    money = DecimalField(max_digits=12, decimal_places=2, null=True)
    key = UUIDField(null=True)
    data = BinaryJSONField(null=True, index=False)
    nums = ArrayField(IntegerField, null=True, index=False)
    blob = BlobField(null=True)
    iv = IntervalField(null=True)
    big = BigIntegerField(null=True)
    f = DoubleField(null=True)
    ok = BooleanField(default=True)

    class Meta:
        table_name = "pw_user"


class Post(Base):
    user = ForeignKeyField(User, backref="posts", on_delete="CASCADE")
    title = TextField()

    class Meta:
        table_name = "pw_post"
        indexes = ((("user", "title"), True),)


def back():
    with db.atomic() as tx:
        User.create(name="gone")
        with db.savepoint() as sp:
            User.create(name="sp")
            sp.rollback()
        n = User.select().count()
        tx.rollback()
    return n, User.select().count()


def models():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for m in generate_models(db, table_names=["pw_user", "pw_post"]).values():
            print_model(m)
    return out.getvalue()


db.connect()
t("create", lambda: db.create_tables([User, Post]))
t("again", lambda: db.create_tables([User, Post]))
t(
    "ins",
    lambda: User.create(
        name="a",
        age=3,
        born=dt.date(2000, 1, 1),
        made_z=dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc),
        money=decimal.Decimal("1.50"),
        key=uuid.UUID(int=5),
        data={"a": [1, None]},
        nums=[1, 2],
        blob=b"\0\xff",
        iv=dt.timedelta(days=3),
        big=2**60,
        f=0.1,
    ).id,
)
t(
    "get",
    lambda: {
        k: (bytes(v) if isinstance(v, memoryview) else v)
        for k, v in User.get(User.name == "a").__data__.items()
    },
)
t(
    "many",
    lambda: len(
        list(
            User.insert_many([{"name": f"n{i}", "age": i + 1} for i in range(50)])
            .returning(User.id)
            .execute()
        )
    ),
)
t("posts", lambda: Post.bulk_create([Post(user=1, title=f"p{i}") for i in range(5)]))
t(
    "join",
    lambda: list(
        User.select(User.name, fn.COUNT(Post.id).alias("n"), fn.ARRAY_AGG(Post.title).alias("x"))
        .join(Post, JOIN.LEFT_OUTER)
        .group_by(User.id)
        .order_by(SQL("n").desc(), User.name)
        .limit(3)
        .tuples()
    ),
)
t(
    "prefetch",
    lambda: [
        (u.name, len(u.posts)) for u in prefetch(User.select().order_by(User.id).limit(2), Post)
    ],
)
t("json", lambda: [u.name for u in User.select().where(User.data.contains({"a": [1]}))])
t("json2", lambda: [u.name for u in User.select().where(User.data["a"] == [1, None])])
t("array", lambda: [u.name for u in User.select().where(User.nums.contains(1, 2))])
t(
    "upsert",
    lambda: list(
        User.insert(name="a", age=9)
        .on_conflict(conflict_target=[User.name], update={User.age: EXCLUDED.age + 1})
        .returning(User.age)
        .execute()
    )[0].age,
)
t("ignore", lambda: User.insert(name="a").on_conflict_ignore().execute())
t("update", lambda: User.update(age=User.age + 1).where(User.age > 40).execute())
t("tx", back)
t("unique", lambda: User.create(name="a"))
t("check", lambda: User.create(name="x", age=-1))
t("fk", lambda: Post.create(user=999, title="q"))
t("like", lambda: User.select().where(User.name.contains("N1")).count())
t("re", lambda: User.select().where(User.name.iregexp("^N[12]$")).count())
t(
    "date",
    lambda: list(
        User.select(User.made.year, User.made.truncate("month"), fn.date_part("day", User.made))
        .limit(1)
        .tuples()
    ),
)
t(
    "window",
    lambda: list(
        User.select(
            User.name, fn.RANK().over(partition_by=[User.age + 2], order_by=[User.age.desc()])
        )
        .order_by(User.id)
        .limit(3)
        .tuples()
    ),
)


t("server", lambda: sum(1 for _ in ServerSide(User.select())))
t("tables", lambda: db.get_tables())
t("indexes", lambda: sorted(map(str, db.get_indexes("pw_user"))))
t("columns", lambda: db.get_columns("pw_user"))
t("pks", lambda: db.get_primary_keys("pw_user"))
t("fks", lambda: db.get_foreign_keys("pw_post"))
t("seq", lambda: db.sequence_exists("pw_user_id_seq"))
t(
    "views",
    lambda: (
        db.execute_sql("create view pw_view as select name from pw_user where age > 3"),
        db.get_views(),
    )[1],
)
t("models", models)
m = PostgresqlMigrator(db)
t(
    "mig",
    lambda: migrate(
        m.add_column("pw_user", "nick", CharField(default="n")),
        m.rename_column("pw_user", "f", "ff"),
        m.add_not_null("pw_user", "ok"),
        m.drop_not_null("pw_post", "title"),
        m.add_index("pw_user", ("age", "name"), True),
        m.drop_index("pw_user", "user_age"),
        m.rename_table("pw_post", "pw_article"),
        m.alter_column_type("pw_user", "big", TextField()),
        m.add_constraint("pw_user", "ck2", Check("age < 1000")),
        m.drop_constraint("pw_user", "ck2"),
        (
            m.add_unique("pw_user", "key")
            if hasattr(m, "add_unique")
            else m.add_index("pw_user", ("key",))
        ),
        m.set_search_path("public"),
    ),
)
t("models2", lambda: sorted(map(str, db.get_indexes("pw_user"))))
t("colsm", lambda: db.get_columns("pw_user"))
t("table", lambda: User.truncate_table(restart_identity=True, cascade=True))
t("drop", lambda: db.drop_tables([User], cascade=True))
