"""Tortoise ORM and aerich, and an asyncpg pool under load. usage: tortoise_use.py URL"""

import asyncio, sys, datetime as dt, decimal, enum, uuid, types, subprocess, os, tempfile
from tortoise import Tortoise, fields
from tortoise.models import Model
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.contrib.postgres.indexes import GinIndex
from tortoise.indexes import Index
from tortoise.functions import *
from tortoise.expressions import *
from tortoise.transactions import in_transaction, atomic
from tortoise.exceptions import *

URL = sys.argv[1]


class Mood(str, enum.Enum):
    sad = "sad"
    ok = "ok"


class Tag(Model):
    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=20, unique=True)

    class Meta:
        table = "to_tag"


class User(Model):
    id = fields.BigIntField(primary_key=True)
    name = fields.CharField(max_length=40, db_index=True, description="the name")
    age = fields.SmallIntField(default=1)
    mood = fields.CharEnumField(Mood, default=Mood.ok)
    born = fields.DateField(null=True)
    made = fields.DatetimeField(auto_now_add=True)
    tm = fields.TimeField(null=True)
    dur = fields.TimeDeltaField(null=True)
    money = fields.DecimalField(max_digits=12, decimal_places=2, null=True)
    key = fields.UUIDField(default=uuid.uuid4)
    data = fields.JSONField(default=dict)
    blob = fields.BinaryField(null=True)
    f = fields.FloatField(null=True)
    nums = ArrayField("int", null=True)
    tags = fields.ManyToManyField("models.Tag", through="to_user_tag")

    class Meta:
        table = "to_user"
        table_description = "users"
        unique_together = (("name", "age"),)
        indexes = [Index(fields=["age", "born"], name="to_ab")]


class Post(Model):
    id = fields.UUIDField(primary_key=True)
    user = fields.ForeignKeyField("models.User", related_name="posts", on_delete=fields.CASCADE)
    title = fields.TextField()

    class Meta:
        table = "to_post"


async def t(name, f):
    try:
        r = f()
        r = await r if hasattr(r, "__await__") else r
        print(name, repr(r)[:1500])
    except Exception as e:
        print(name, "ERR", type(e).__name__, str(e)[:300].replace("\n", " | "))


async def main():
    await Tortoise.init(
        db_url=URL.replace("postgresql:", "asyncpg:"), modules={"models": [__name__]}
    )
    from tortoise.utils import get_schema_sql

    c = Tortoise.get_connection("default")
    await t("ddl", lambda: get_schema_sql(c, safe=True))
    await t("create", lambda: Tortoise.generate_schemas())
    await t("again", lambda: Tortoise.generate_schemas(safe=True))

    async def seed():
        u = await User.create(
            name="a",
            age=20,
            mood=Mood.sad,
            born=dt.date(2000, 1, 1),
            tm=dt.time(1, 2, 3),
            dur=dt.timedelta(days=2),
            money="1.50",
            key=uuid.UUID(int=5),
            data={"a": [1, None], "b": {"c": "d"}},
            blob=b"\0\xff",
            f=0.1,
            nums=[1, 2],
        )
        await u.tags.add(*[await Tag.create(name=f"t{i}") for i in range(3)])
        await User.bulk_create([User(name=f"n{i}", age=i) for i in range(30)], batch_size=7)
        await Post.bulk_create([Post(id=uuid.UUID(int=i), user=u, title=f"p{i}") for i in range(4)])
        u = await User.get(id=u.id)
        return [
            u.name,
            u.age,
            u.mood,
            u.born,
            u.tm,
            u.dur,
            u.money,
            u.data,
            bytes(u.blob),
            u.f,
            u.nums,
        ]

    await t("seed", seed)
    await t(
        "json", lambda: User.filter(data__contains={"b": {"c": "d"}}).values_list("name", flat=True)
    )
    await t("jsonf", lambda: User.filter(data__filter={"b__c": "d"}).values_list("name", flat=True))
    await t("arr", lambda: User.filter(nums__contains=[1]).values_list("name", flat=True))
    await t(
        "agg",
        lambda: User.annotate(n=Count("posts"), m=Max("posts__title"))
        .filter(n__gt=0)
        .values("name", "n", "m"),
    )
    await t(
        "group",
        lambda: User.annotate(n=Count("id"), s=Sum("age"), a=Avg("age"))
        .group_by("mood")
        .order_by("mood")
        .values("mood", "n", "s", "a"),
    )
    await t(
        "q",
        lambda: User.filter(Q(name__icontains="N1") | Q(age__in=[3, 4]), ~Q(age=3))
        .order_by("-age")
        .limit(3)
        .offset(1)
        .values_list("name", "age"),
    )
    await t(
        "pre",
        lambda: User.filter(name="a")
        .prefetch_related("tags", "posts")
        .first()
        .values("name", "tags__name"),
    )
    await t(
        "case",
        lambda: User.annotate(c=Case(When(age__gt=10, then="old"), default="young"))
        .order_by("id")
        .limit(2)
        .values_list("c", flat=True),
    )
    await t("sub", lambda: User.filter(id__in=Subquery(Post.all().values("user_id"))).count())

    async def goc():
        return [(await Tag.get_or_create(name="t1"))[1], (await Tag.update_or_create(name="q"))[1]]

    await t("goc", goc)

    async def ups():
        await Tag.bulk_create([Tag(id=1, name="T0")], on_conflict=["id"], update_fields=["name"])
        return (await Tag.get(id=1)).name

    await t("ups", ups)

    async def back():
        try:
            async with in_transaction() as x:
                await Tag.create(name="gone", using_db=x)
                try:
                    async with in_transaction() as y:
                        await Tag.create(name="sp", using_db=y)
                        raise ValueError
                except ValueError:
                    pass
                n = await Tag.filter(name__in=["gone", "sp"]).using_db(x).count()
                raise KeyError
        except KeyError:
            return [n, await Tag.filter(name="gone").count()]

    await t("back", back)
    await t("uniq", lambda: Tag.create(name="t1"))
    await t("lock", lambda: User.filter(age=20).select_for_update(skip_locked=True).count())
    await t("upd", lambda: User.filter(age__gt=20).update(age=F("age") + 1))
    await t("del", lambda: User.filter(name="a").delete())
    await t("left", lambda: Post.all().count())
    await t("re", lambda: User.filter(name__posix_regex="^n[12]$").count())
    await t(
        "raw", lambda: c.execute_query_dict("select count(*) n, $1::text x from to_user", ["v"])
    )

    async def load():
        import asyncpg

        p = await asyncpg.create_pool(URL, min_size=2, max_size=8)

        async def one(i):
            async with p.acquire() as k, k.transaction():
                await k.execute(
                    "insert into to_tag (name) values ($1) on conflict do nothing", f"load{i % 50}"
                )
                return await k.fetchval("select $1::int + 1", i)

        r = sum(await asyncio.gather(*[one(i) for i in range(200)]))
        n = await p.fetchval("select count(*) from to_tag where name like 'load%'")
        await p.close()
        return r, n

    await t("load", load)

    async def intro():
        import asyncpg

        k = await asyncpg.connect(URL)
        st = await k.prepare("select * from to_user where id = $1")
        a = [(x.name, x.type.name, x.type.kind, x.type.schema) for x in st.get_attributes()]
        await k.execute(
            "create type to_comp as (a int, b text[]); create type to_e as enum ('x', 'y'); create domain to_d as int check (value > 0)"
        )
        r = await k.fetchrow(
            "select row(1, array['x'])::to_comp a, 'x'::to_e b, array['y']::to_e[] c, 5::to_d d, array[row(1, null)::to_comp] e, int4range(1,5) f, '{[1,2),[5,6)}'::int4multirange g, '1 day'::interval h, '10.0.0.0/8'::cidr i, '(1,2)'::point j, b'101' k, null l, 'a'::\"char\" m, 1::oid n, 'pg_class'::regclass o, '08:00:2b:01:02:03'::macaddr p, 12.5::money q"
        )
        print("row", r)
        st = await k.prepare(
            "insert into to_tag (name) select * from unnest($1::text[]) returning id"
        )
        r2 = [x.type.name if hasattr(x, "type") else x.name for x in st.get_parameters()]
        tr = await k.copy_records_to_table(
            "to_tag", records=[(900 + i, f"c{i}") for i in range(5)], columns=["id", "name"]
        )
        import io

        b = io.BytesIO()
        o = await k.copy_from_query(
            "select name from to_tag where id >= $1 order by 1", 900, output=b, format="csv"
        )
        return a, r2, tr, o, b.getvalue()

    await t("intro", intro)
    await Tortoise.close_connections()


asyncio.run(main())
