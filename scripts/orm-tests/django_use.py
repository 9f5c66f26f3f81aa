"""Django: makemigrations and migrate, no difference left, changes, inspectdb, queries, backwards. usage: django_use.py URL"""

import io, os, sys, tempfile, textwrap, datetime as dt, decimal, uuid, contextlib, shutil
from urllib.parse import urlparse

at = urlparse(sys.argv[1])
work = os.environ.get("WORK") or tempfile.mkdtemp()
sys.path.insert(0, work)
app = os.path.join(work, "shop")
os.makedirs(app + "/migrations", exist_ok=True)
open(app + "/__init__.py", "w")
open(app + "/migrations/__init__.py", "w")
V1 = """
from django.db import models
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, IntegerRangeField
from django.contrib.postgres.indexes import GinIndex, BrinIndex, HashIndex
from django.db.models.functions import Lower
import uuid
class Tag(models.Model):
    name = models.SlugField(unique=True)
class Customer(models.Model):
    name = models.CharField(max_length=40)
    email = models.EmailField(unique=True)
    age = models.PositiveSmallIntegerField(default=1, db_index=True)
    active = models.BooleanField(default=True, db_default=True)
    born = models.DateField(null=True)
    made = models.DateTimeField(auto_now_add=True)
    money = models.DecimalField(max_digits=12, decimal_places=2, default=0)
    key = models.UUIDField(default=uuid.uuid4, unique=True)
    data = models.JSONField(default=dict)
    nums = ArrayField(models.IntegerField(), null=True)
    grid = ArrayField(ArrayField(models.CharField(max_length=3)), null=True)
    span = IntegerRangeField(null=True)
    when = DateTimeRangeField(null=True)
    blob = models.BinaryField(null=True)
    dur = models.DurationField(null=True)
    ip = models.GenericIPAddressField(null=True)
    f = models.FloatField(null=True)
    big = models.BigIntegerField(null=True)
    twice = models.GeneratedField(expression=models.F("age") * 2, output_field=models.IntegerField(), db_persist=True)
    tags = models.ManyToManyField(Tag)
    class Meta:
        db_table_comment = "who buys"
        constraints = [models.CheckConstraint(condition=models.Q(age__lt=200), name="age_lt"), models.UniqueConstraint("name", "age", name="na"),
            models.UniqueConstraint(Lower("email"), name="low"), models.UniqueConstraint(fields=["name"], condition=models.Q(active=True), name="act", include=["age"]),
            models.UniqueConstraint(fields=["big"], name="defer_big", deferrable=models.Deferrable.DEFERRED)]
        indexes = [models.Index(fields=["-born", "name"], name="bn"), models.Index(Lower("name").desc(), name="ln"), HashIndex(fields=["f"], name="hf"), GinIndex(fields=["data"], name="gd"), BrinIndex(fields=["made"], name="bm"), models.Index(fields=["name"], opclasses=["varchar_pattern_ops"], name="vpo")]
class Order(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    total = models.DecimalField(max_digits=10, decimal_places=2)
    note = models.TextField(blank=True)
    prev = models.OneToOneField("self", null=True, on_delete=models.SET_NULL)
class Line(models.Model):
    pk = models.CompositePrimaryKey("order_id", "no")
    order = models.ForeignKey(Order, on_delete=models.CASCADE)
    no = models.IntegerField()
    what = models.CharField(max_length=20, db_collation="C")
"""
V2 = (
    V1.replace(
        "name = models.CharField(max_length=40)",
        'name = models.CharField(max_length=80, db_comment="full")\n    nick = models.CharField(max_length=9, default="n", db_index=True)',
    )
    .replace("    f = models.FloatField(null=True)\n", "")
    .replace(', HashIndex(fields=["f"], name="hf")', "")
    .replace(
        "note = models.TextField(blank=True)",
        "remark = models.TextField(null=True)\n    at = models.DateTimeField(db_default=models.functions.Now())",
    )
    .replace(
        "age = models.PositiveSmallIntegerField(default=1, db_index=True)",
        "age = models.PositiveSmallIntegerField(default=2)",
    )
    .replace('max_length=20, db_collation="C"', "max_length=30")
    .replace("big = models.BigIntegerField(null=True)", "big = models.TextField(null=True)")
    .replace('name="bn"', 'name="bn2"')
    .replace("class Order(", "class Purchase(")
    .replace("(Order,", "(Purchase,")
)
which = os.environ.get("V", "1")
open(app + "/models.py", "w").write(V1 if which == "1" else V2)
os.environ["DJANGO_SETTINGS_MODULE"] = ""
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": at.path[1:],
            "USER": at.username,
            "HOST": at.hostname,
            "PORT": at.port,
            "OPTIONS": {"server_side_binding": os.environ.get("SSB") == "1"},
        }
    },
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        "django.contrib.sessions",
        "django.contrib.postgres",
        "shop",
    ],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    SECRET_KEY="x",
)
import django

django.setup()
from django.core.management import call_command
from django.db import connection, transaction


def t(name, f):
    try:
        print(name, repr(f())[:9000])
    except Exception as e:
        print(
            name,
            "ERR",
            type(e).__name__,
            getattr(e.__cause__, "sqlstate", ""),
            str(e)[:300].replace("\n", " | "),
        )


def cmd(*a, **k):
    out = io.StringIO()
    try:
        call_command(*a, stdout=out, stderr=out, **k)
    except SystemExit as e:
        out.write(f"exit {e.code}")
    return out.getvalue().replace(work, "")


from django.contrib.postgres.operations import CreateExtension

t("make", lambda: cmd("makemigrations", "shop"))
t("sql", lambda: cmd("sqlmigrate", "shop", "0001"))
t("migrate", lambda: cmd("migrate"))
t("again", lambda: cmd("migrate"))
t("check", lambda: cmd("makemigrations", "--check"))
from shop.models import *
from django.db.models import *
from django.db.models.functions import *
from django.contrib.postgres.aggregates import ArrayAgg, StringAgg, JSONBAgg, BoolAnd
from django.contrib.postgres.search import SearchVector
from django.db.backends.postgresql.psycopg_any import NumericRange, DateTimeTZRange


def seed():
    c = Customer.objects.create(
        name="a",
        email="A@x",
        age=20,
        born=dt.date(2000, 1, 1),
        money="1.50",
        key=uuid.UUID(int=5),
        data={"a": [1, None], "b": {"c": "d"}},
        nums=[1, 2],
        grid=[["a", "b"], ["c", "d"]],
        span=(1, 5),
        blob=b"\0\xff",
        dur=dt.timedelta(days=1, seconds=2),
        ip="::1",
        f=0.1,
        big=2**60,
    )
    c.tags.set([Tag.objects.create(name=f"t{i}") for i in range(3)])
    Customer.objects.bulk_create(
        [Customer(name=f"n{i}", email=f"e{i}", age=i + 1) for i in range(30)], batch_size=7
    )
    for i in range(5):
        o = Order.objects.create(customer=c, total=i)
        Line.objects.bulk_create([Line(order=o, no=n, what=f"w{n}") for n in range(3)])
    c.refresh_from_db()
    return [c.twice, c.nums, c.grid, c.span, bytes(c.blob), c.dur, c.ip, c.money, c.data]


if which == "1":
    t("seed", seed)
    t(
        "json",
        lambda: list(
            Customer.objects.filter(
                data__b__c="d", data__a__0=1, data__contains={"b": {}}, data__has_key="a"
            ).values_list("name", flat=True)
        ),
    )
    t(
        "array",
        lambda: list(
            Customer.objects.filter(
                nums__contains=[1], nums__len=2, nums__0=1, nums__overlap=[2, 9]
            ).values_list("nums__0", "nums__0_1")
        ),
    )
    t(
        "range",
        lambda: list(
            Customer.objects.filter(
                span__contains=3, span__startswith=1, span__overlap=NumericRange(4, 9)
            ).values_list("span")
        ),
    )
    t(
        "agg",
        lambda: list(
            Customer.objects.annotate(
                n=Count("orders"),
                s=Sum("orders__total"),
                x=ArrayAgg(
                    "orders__total", ordering="-orders__total", filter=Q(orders__total__gt=1)
                ),
            )
            .filter(n__gt=0)
            .values_list("name", "n", "s", "x")
        ),
    )
    t(
        "agg2",
        lambda: Customer.objects.aggregate(
            Avg("age"),
            StdDev("age"),
            Max("made__year"),
            b=BoolAnd("active"),
            s=StringAgg("name", ",", ordering="name", filter=Q(age__lt=4)),
            j=JSONBAgg("age", filter=Q(age__lt=3), ordering="age"),
        ),
    )
    t(
        "sub",
        lambda: list(
            Customer.objects.annotate(
                last=Subquery(
                    Order.objects.filter(customer=OuterRef("pk"))
                    .order_by("-total")
                    .values("total")[:1]
                ),
                e=Exists(Order.objects.filter(customer=OuterRef("pk"))),
            )
            .filter(e=True)
            .values_list("name", "last")
        ),
    )
    t(
        "win",
        lambda: list(
            Order.objects.annotate(
                r=Window(RowNumber(), partition_by="customer", order_by=F("total").desc()),
                c=Window(Sum("total"), order_by="total"),
            )
            .values_list("total", "r", "c")
            .order_by("total")
        ),
    )
    t(
        "dates",
        lambda: list(
            Customer.objects.annotate(
                m=TruncMonth("born"),
                w=ExtractWeekDay("born"),
                q=ExtractQuarter("born"),
                y=ExtractIsoYear("born"),
            ).values_list("m", "w", "q", "y")[:1]
        ),
    )
    t(
        "fns",
        lambda: list(
            Customer.objects.filter(age=20)
            .order_by("id")
            .values_list(
                Concat("name", Value("-"), "email"),
                Left("email", 1),
                Cast("age", TextField()),
                Coalesce("big", 0),
                Greatest("age", 3),
                MD5("name"),
                SHA256("name"),
                Round("f", 2),
                LPad("name", 4, Value("x")),
                JSONObject(a="age", n="name"),
            )
        ),
    )
    t(
        "ups",
        lambda: [
            Customer.objects.bulk_create(
                [Customer(name="up", email="e1", age=99, key=uuid.UUID(int=77))],
                update_conflicts=True,
                unique_fields=["email"],
                update_fields=["name", "age"],
            )[0].name,
            Customer.objects.get(email="e1").age,
        ],
    )
    t(
        "goc",
        lambda: [
            Tag.objects.get_or_create(name="t1")[1],
            Tag.objects.update_or_create(name="zz", defaults={})[1],
        ],
    )
    t(
        "pre",
        lambda: [
            [o.total for o in c.orders.all()]
            for c in Customer.objects.prefetch_related(
                Prefetch("orders", Order.objects.order_by("total")), "tags"
            ).filter(email="A@x")
        ],
    )
    t(
        "sel",
        lambda: [
            (l.pk, l.order.customer.name)
            for l in Line.objects.select_related("order__customer").order_by("pk")[:2]
        ],
    )
    t(
        "lock",
        lambda: transaction.atomic(
            lambda: [
                Order.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
                .select_related("customer")
                .order_by("id")
                .first()
                .total
            ]
        )(),
    )

    def back():
        with contextlib.suppress(ValueError), transaction.atomic():
            Tag.objects.create(name="gone")
            with contextlib.suppress(ValueError), transaction.atomic():
                Tag.objects.create(name="sp")
                raise ValueError
            n = Tag.objects.count()
            raise ValueError
        return [n, Tag.objects.count()]

    t("back", back)
    t("iter", lambda: sum(1 for _ in Customer.objects.iterator(chunk_size=7)))
    t("uniq", lambda: Customer.objects.create(name="q", email="a@x"))
    t("chk", lambda: Customer.objects.create(name="q", email="qq", age=300))
    t(
        "in",
        lambda: Customer.objects.filter(
            name__iregex="^N[12]$", email__icontains="E", name__in=["n1", "n2"]
        ).count(),
    )
    t(
        "union",
        lambda: list(
            Tag.objects.filter(name="t0")
            .union(Tag.objects.filter(name="t1"))
            .values_list("name")
            .order_by("name")
        ),
    )
    t("expl", lambda: type(Tag.objects.all().explain(verbose=True)))
    t(
        "upd",
        lambda: [
            Customer.objects.filter(orders__total__gt=2).update(age=F("age") + 1),
            Order.objects.filter(customer__name="a", total=0).delete(),
        ],
    )
    t(
        "inv",
        lambda: list(
            Customer.objects.filter(made__date__gte=dt.date(2001, 1, 1), made__hour__gte=0)
            .values_list("name")
            .order_by("name")[:1]
        ),
    )
    t(
        "raw",
        lambda: [
            x.name
            for x in Customer.objects.raw(
                "select * from shop_customer where age = %s order by id", [3]
            )
        ],
    )
    # A second version of the models: renamed tables and columns, other types.
    open(app + "/models.py", "w").write(V2)
    os.environ["V"] = "2"
    Line.objects.all().delete()
    t("inspectdb", lambda: cmd("inspectdb"))
t(
    "intro",
    lambda: [
        (
            n,
            sorted(
                (k, str(sorted(v.items(), key=str)))
                for k, v in connection.introspection.get_constraints(connection.cursor(), n).items()
                if not k.endswith("_not_null")
            ),
        )
        for n in ("shop_customer", "shop_line")
    ],
)
if which == "1":
    import subprocess

    print(
        subprocess.run(
            [sys.executable, __file__, sys.argv[1]],
            env={**os.environ, "V": "2", "WORK": work},
            input="y\n" * 20,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ).stdout.replace(work, "")
    )
    t("down", lambda: cmd("migrate", "shop", "0001"))
    t("inspect again", lambda: cmd("inspectdb"))
    t("zero", lambda: cmd("migrate", "shop", "zero"))
if which == "1":
    shutil.rmtree(work, ignore_errors=True)
