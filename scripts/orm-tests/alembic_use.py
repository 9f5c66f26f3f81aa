"""SQLAlchemy's ORM and Alembic: autogenerate against an empty schema, upgrade, no difference left, changes, downgrade.
usage: alembic_use.py URL"""

import datetime as dt, decimal, enum, sys, uuid
from sqlalchemy import *
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import *
from sqlalchemy.ext.asyncio import create_async_engine
from alembic import command
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations

URL = sys.argv[1]
DRIVERS = ["psycopg", "psycopg2", "pg8000"]


def t(name, f):
    try:
        r = f()
        print(name, repr(r)[:1500])
        return r
    except Exception as e:
        o = getattr(e, "orig", e)
        print(
            name,
            "ERR",
            type(e).__name__,
            getattr(o, "sqlstate", getattr(o, "pgcode", "")),
            str(o)[:300].replace("\n", " | "),
        )


class Mood(enum.Enum):
    sad = 1
    ok = 2


naming = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def models(version):
    class Base(DeclarativeBase):
        metadata = MetaData(naming_convention=naming)

    links = Table(
        "al_tags",
        Base.metadata,
        Column("post_id", ForeignKey("al_post.id", ondelete="CASCADE"), primary_key=True),
        Column("tag_id", ForeignKey("al_tag.id"), primary_key=True),
    )

    class Tag(Base):
        __tablename__ = "al_tag"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(String(30), unique=True)

    class User(Base):
        __tablename__ = "al_user"
        __table_args__ = (
            CheckConstraint("age > 0 AND age < 200", name="age"),
            UniqueConstraint("name", "age", name="uq_na"),
            Index("ix_lower", func.lower(text("name"))),
            Index("ix_part", "age", postgresql_where=text("active")),
            Index("ix_inc", "age", postgresql_include=["name"]),
            {"comment": "the users"},
        )
        id: Mapped[int] = mapped_column(Identity(always=True, start=10), primary_key=True)
        name: Mapped[str] = mapped_column(String(50), index=True, comment="what they are called")
        age: Mapped[int] = mapped_column(SmallInteger, server_default="18")
        active: Mapped[bool] = mapped_column(server_default=true())
        born: Mapped[dt.date | None]
        made: Mapped[dt.datetime] = mapped_column(
            DateTime(timezone=True), server_default=func.now()
        )
        mood: Mapped[Mood] = mapped_column(Enum(Mood, name="al_mood"), server_default="ok")
        key: Mapped[uuid.UUID] = mapped_column(server_default=text("gen_random_uuid()"))
        money: Mapped[decimal.Decimal | None] = mapped_column(Numeric(12, 2))
        data: Mapped[dict | None] = mapped_column(pg.JSONB, server_default=text("'{}'::jsonb"))
        nums: Mapped[list[int] | None] = mapped_column(pg.ARRAY(Integer))
        blob: Mapped[bytes | None]
        iv: Mapped[dt.timedelta | None]
        ip: Mapped[str | None] = mapped_column(pg.INET)
        span: Mapped[object | None] = mapped_column(pg.TSTZRANGE)
        full: Mapped[str | None] = (
            mapped_column(Text, Computed("name || ' (' || age || ')'", persisted=True))
            if version > 9
            else mapped_column(Text)
        )
        twice: Mapped[int | None] = mapped_column(Integer, Computed("age * 2", persisted=True))
        if version > 1:
            nick: Mapped[str] = mapped_column(String(20), server_default="")
            score: Mapped[float | None] = mapped_column(Double)
        posts: Mapped[list["Post"]] = relationship(
            back_populates="user", cascade="all, delete-orphan"
        )

    class Post(Base):
        __tablename__ = "al_post"
        id: Mapped[int] = mapped_column(BigInteger if version > 1 else Integer, primary_key=True)
        user_id: Mapped[int] = mapped_column(ForeignKey(User.id, ondelete="CASCADE"), index=True)
        title: Mapped[str] = mapped_column(String(100 if version > 1 else 60), nullable=version > 1)
        body: Mapped[str | None] = mapped_column(Text)
        user: Mapped[User] = relationship(back_populates="posts")
        tags: Mapped[list[Tag]] = relationship(secondary=links)
        if version > 1:
            __table_args__ = (
                Index("ix_post_desc", text("id DESC NULLS LAST"), "title", unique=True),
                Index("ix_gin", "body", postgresql_using="hash"),
            )

    return Base, User, Post, Tag


def migrate(engine, base):
    with engine.connect() as c:
        ctx = MigrationContext.configure(
            c,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "target_metadata": base.metadata,
                "include_object": lambda o, n, ty, r, cmp: True,
            },
        )
        script = produce_migrations(ctx, base.metadata)
        code = render_python_code(script.upgrade_ops)
        back = render_python_code(script.downgrade_ops)
        print("code", code)
        with ctx.begin_transaction():
            ops = Operations(ctx)
            for op in script.upgrade_ops.ops:
                for one in (
                    getattr(op, "ops", [op]) if type(op).__name__ == "ModifyTableOps" else [op]
                ):
                    ops.invoke(one)
        c.commit()
        left = compare_metadata(ctx, base.metadata)
        print("left", left)
        return back


def use(engine, base, User, Post, Tag, tag):
    with Session(engine) as s:
        u = User(
            name="a",
            age=20,
            born=dt.date(2000, 1, 1),
            money=decimal.Decimal("1.50"),
            data={"a": [1, None]},
            nums=[1, 2],
            blob=b"\0\xff",
            iv=dt.timedelta(days=1, seconds=2),
            ip="10.0.0.1",
            posts=[
                Post(title="x", tags=[Tag(name="t1" + tag), Tag(name="t2" + tag)]),
                Post(title="y"),
            ],
        )
        s.add(u)
        s.add_all([User(name=f"n{tag}{i}", age=i + 1) for i in range(30)])
        s.commit()
        print("got", u.mood, u.twice, u.made is not None, u.iv, str(u.ip), u.nums, u.data, u.blob)
        print(
            "eager",
            [
                (p.title, sorted(x.name for x in p.tags))
                for p in s.scalars(
                    select(Post)
                    .options(selectinload(Post.tags), joinedload(Post.user))
                    .order_by(Post.id)
                    .limit(2)
                ).unique()
            ],
        )
        print(
            "page",
            [
                x.name
                for x in s.scalars(select(User).order_by(User.name, User.id).limit(3).offset(2))
            ],
        )
        print(
            "agg",
            s.execute(
                select(
                    User.mood,
                    func.count(),
                    func.sum(User.age),
                    func.max(User.name),
                ).group_by(User.mood)
            ).all(),
        )
        print(
            "win",
            s.execute(
                select(User.age, func.row_number().over(order_by=[User.age.desc(), User.id]))
                .order_by(User.age, User.id)
                .limit(2)
            ).all(),
        )
        try:
            with s.begin_nested():
                s.add(User(name="bad", age=-1))
                s.flush()
        except Exception as e:
            print(
                "check",
                type(e).__name__,
                getattr(e.orig, "sqlstate", None) or getattr(e.orig, "pgcode", None) or "",
            )
        up = pg.insert(Tag).values([{"name": "t1" + tag}, {"name": "new" + tag}])
        up = up.on_conflict_do_update(
            index_elements=[Tag.name], set_={"name": up.excluded.name + "!"}
        ).returning(Tag.name)
        print("upsert", s.scalars(up).all())
        cte = select(User.id, User.age).where(User.age > 5).cte("c")
        print("cte", s.scalar(select(func.count()).select_from(cte)))
        print(
            "json",
            s.scalars(select(User.name).where(User.data["a"][0].as_integer() == 1)).all(),
            s.scalars(select(User.name).where(User.data.contains({"a": [1]}))).all(),
        )
        print("any", s.scalars(select(User.name).where(User.nums.any(2))).all())
        print("stream", sum(1 for _ in s.execute(select(User.id).execution_options(yield_per=7))))
        print(
            "bulk",
            sorted(
                s.execute(
                    update(User).where(User.age > 20).values(active=False).returning(User.age)
                )
                .scalars()
                .all()
            ),
        )
        print(
            "lock",
            len(s.scalars(select(User).with_for_update(skip_locked=True, of=User).limit(2)).all()),
        )
        s.delete(u)
        s.commit()
        print("left", s.scalar(select(func.count(Post.id))))


def main():
    for d in DRIVERS:
        engine = create_engine(URL.replace("postgresql:", f"postgresql+{d}:"))
        with engine.begin() as c:
            c.exec_driver_sql("drop table if exists al_tags, al_post, al_tag, al_user cascade")
            c.exec_driver_sql("drop type if exists al_mood")
        b1 = models(1)
        t(d + " create", lambda: b1[0].metadata.create_all(engine))
        t(d + " drop", lambda: b1[0].metadata.drop_all(engine))
        t(d + " m1", lambda: migrate(engine, b1[0]) and 0)
        t(d + " use1", lambda: use(engine, *b1, "1"))
        b2 = models(2)
        t(d + " m2", lambda: migrate(engine, b2[0]) and 0)
        t(d + " use2", lambda: use(engine, *b2, "2"))
        t(d + " m1 again", lambda: migrate(engine, b1[0]) and 0)
        m = MetaData()
        t(
            d + " reflect",
            lambda: (
                m.reflect(engine),
                [
                    (
                        x.name,
                        [
                            (
                                c.name,
                                str(c.type),
                                c.nullable,
                                (
                                    str(c.server_default.arg)
                                    if getattr(c.server_default, "arg", None) is not None
                                    else None
                                ),
                            )
                            for c in x.columns
                        ],
                    )
                    for x in m.sorted_tables
                ],
            )[1],
        )
        i = inspect(engine)
        for n in ("al_user", "al_post"):
            t(d + " ix", lambda: i.get_indexes(n))
            t(d + " fk", lambda: i.get_foreign_keys(n))
            t(d + " ck", lambda: i.get_check_constraints(n))
            t(d + " uq", lambda: i.get_unique_constraints(n))
            t(d + " pk", lambda: i.get_pk_constraint(n))
            t(d + " cm", lambda: i.get_table_comment(n))
            t(d + " co", lambda: i.get_columns(n))
        t(d + " enums", lambda: i.get_enums())
        t(d + " seqs", lambda: sorted(i.get_sequence_names()))
        t(
            d + " names",
            lambda: (sorted(i.get_table_names()), i.get_view_names(), sorted(i.get_schema_names())),
        )
        engine.dispose()


main()
