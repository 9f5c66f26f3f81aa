//! tokio-postgres, sqlx, SeaORM and its reader of schemas: each answer on a line.
//!
//! usage: rust-use URL
use std::fmt::Debug;
use std::time::Duration;

use futures::{SinkExt, StreamExt, TryStreamExt, pin_mut};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, ConnectionTrait, Database, EntityTrait,
    PaginatorTrait, QueryFilter, QueryOrder, Schema, TransactionTrait,
};
use sqlx::{
    Acquire, Column, Connection, Executor, Row, Statement, TypeInfo, postgres::PgPoolOptions,
};
use tokio_postgres::{
    AsyncMessage, NoTls, SimpleQueryMessage, binary_copy::BinaryCopyInWriter, types::Type,
};

fn said<T: Debug, E: std::fmt::Display + Debug>(name: &str, r: Result<T, E>) {
    let text = match r {
        Ok(v) => format!("{v:?}"),
        Err(e) => format!("ERR {e} {e:?}"),
    };
    let text: String = text.replace('\n', " | ").chars().take(1500).collect();
    println!("{name} {text}");
}

async fn tokio(url: &str) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let (tx, mut rx) = futures::channel::mpsc::unbounded();
    tokio::spawn(async move {
        let mut s = futures::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(m)) = s.next().await {
            let text = match m {
                AsyncMessage::Notice(n) => format!("notice {} {}", n.code().code(), n.message()),
                AsyncMessage::Notification(n) => format!("{} {}", n.channel(), n.payload()),
                _ => String::new(),
            };
            let _ = tx.unbounded_send(text);
        }
    });
    client.batch_execute("drop table if exists tp; create table tp (a int primary key, b text, c timestamptz, d numeric, e text[], f jsonb, g uuid, h float8)").await?;
    let s = client
        .prepare(
            "insert into tp values ($1, $2, $3, $4::text::numeric, $5, $6, $7, $8) returning a, c",
        )
        .await?;
    println!(
        "params {:?} {:?}",
        s.params(),
        s.columns()
            .iter()
            .map(|c| (c.name(), c.type_().clone(), c.table_oid().is_some(), c.column_id()))
            .collect::<Vec<_>>()
    );
    let at: chrono::DateTime<chrono::Utc> = "2024-01-02T03:04:05.678Z".parse().unwrap();
    let doc = serde_json::json!({"k": [1, null]});
    let id = uuid::Uuid::from_u128(7);
    for a in 1..4i32 {
        let r = client
            .query_one(&s, &[&a, &"é", &at, &"1.50", &vec![Some("x"), None], &doc, &id, &0.5f64])
            .await;
        said(
            "insert",
            r.map(|r| (r.get::<_, i32>(0), r.get::<_, chrono::DateTime<chrono::Utc>>(1))),
        );
    }
    let again = client
        .query(&s, &[&1i32, &"é", &at, &"1", &Vec::<Option<&str>>::new(), &doc, &id, &0.5f64])
        .await;
    let e = again.unwrap_err();
    let d = e.as_db_error().unwrap();
    println!(
        "duplicate {:?} {:?} {:?} {:?} {:?} {:?}",
        d.code().code(),
        d.message(),
        d.detail(),
        d.constraint(),
        d.table(),
        d.schema()
    );
    let rows = client
        .query("select b, e, f, g, h, d::text from tp where a = any($1) order by a", &[&vec![1, 2]])
        .await?;
    for r in rows {
        said(
            "row",
            Ok::<_, tokio_postgres::Error>((
                r.get::<_, String>(0),
                r.get::<_, Vec<Option<String>>>(1),
                r.get::<_, serde_json::Value>(2),
                r.get::<_, uuid::Uuid>(3),
                r.get::<_, f64>(4),
                r.get::<_, String>(5),
            )),
        );
    }
    // Types of users are looked up in the catalogs.
    client.batch_execute("drop type if exists tp_pair, tp_mood cascade; drop domain if exists tp_dom; create type tp_mood as enum ('a', 'b'); create type tp_pair as (x int, y tp_mood); create domain tp_dom as text[]; ").await?;
    for q in [
        "select 'a'::tp_mood",
        "select row(1, 'b')::tp_pair",
        "select '{x}'::tp_dom",
        "select array['a'::tp_mood]",
        "select $1::tp_pair",
        "select int4range(1, 5), '{[1,2)}'::int4multirange",
        "select 'tp'::regclass, 'int4'::regtype, 1::oid, 'n'::name, '\"c\"'::\"char\"",
    ] {
        let s = client.prepare(q).await;
        said(
            q,
            s.map(|s| {
                (
                    s.params()
                        .iter()
                        .map(|t| (t.name().to_string(), t.kind().clone()))
                        .collect::<Vec<_>>()
                        .len(),
                    s.columns()
                        .iter()
                        .map(|c| (c.type_().name().to_string(), c.type_().schema().to_string()))
                        .collect::<Vec<_>>(),
                )
            }),
        );
    }
    let messages = client.simple_query("select 1 a, null b; insert into tp (a) values (10); select 2; listen tp_c; notify tp_c, 'there'").await?;
    for m in messages {
        match m {
            SimpleQueryMessage::Row(r) => println!("simple {:?} {:?}", r.get(0), r.try_get(1).ok()),
            SimpleQueryMessage::CommandComplete(n) => println!("done {n}"),
            _ => {}
        }
    }
    println!("notified {:?}", tokio::time::timeout(Duration::from_secs(5), rx.next()).await);
    client.batch_execute("drop table if exists tp_none").await?;
    println!("noticed {:?}", tokio::time::timeout(Duration::from_secs(5), rx.next()).await);
    let sink = client.copy_in("copy tp (a, b) from stdin (format csv)").await?;
    pin_mut!(sink);
    sink.send(std::io::Cursor::new(b"20,x\n21,\"y,z\"\n")).await?;
    println!("copied {}", sink.finish().await?);
    let sink = client.copy_in("copy tp (a, b, h) from stdin binary").await?;
    let w = BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT, Type::FLOAT8]);
    pin_mut!(w);
    w.as_mut().write(&[&30i32, &"q", &1.5f64]).await?;
    println!("binary {}", w.finish().await?);
    let out: Vec<_> = client
        .copy_out("copy (select a, b from tp order by a) to stdout")
        .await?
        .map_ok(|b| String::from_utf8_lossy(&b).into_owned())
        .try_collect()
        .await?;
    println!("out {:?}", out.concat());
    let mut client = client;
    let t = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .deferrable(true)
        .start()
        .await?;
    let r = t.execute("delete from tp", &[]).await;
    println!(
        "read only {:?}",
        r.unwrap_err()
            .as_db_error()
            .map(|e| (e.code().code().to_string(), e.message().to_string()))
    );
    t.rollback().await?;
    let t = client.transaction().await?;
    let portal = t.bind("select a from tp order by a", &[]).await?;
    let first = t.query_portal(&portal, 2).await?;
    let second = t.query_portal(&portal, 0).await?;
    println!("portal {} {}", first.len(), second.len());
    t.commit().await?;
    let cancel = client.cancel_token();
    let (r, _) = tokio::join!(client.query("select pg_sleep(20)", &[]), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = cancel.cancel_query(NoTls).await;
    });
    println!("cancelled {:?}", r.unwrap_err().as_db_error().map(|e| e.code().code().to_string()));
    let (a, b, c) = tokio::join!(
        client.query_one("select 1", &[]),
        client.query_one("select 1/0", &[]),
        client.query_one("select 3", &[])
    );
    println!("pipelined {} {} {}", a.is_ok(), b.is_err(), c.is_ok());
    Ok(())
}

#[derive(sqlx::Type, Debug, PartialEq)]
#[sqlx(type_name = "sx_mood", rename_all = "lowercase")]
enum Mood {
    Sad,
    Happy,
}
#[derive(sqlx::Type, Debug)]
#[sqlx(type_name = "sx_pair")]
struct Pair {
    x: i32,
    y: String,
}
#[derive(sqlx::FromRow, Debug)]
#[allow(dead_code)]
struct Thing {
    id: i64,
    name: String,
    mood: Mood,
    pair: Option<Pair>,
    tags: Vec<String>,
    doc: sqlx::types::Json<serde_json::Value>,
    n: Option<sqlx::types::BigDecimal>,
    day: chrono::NaiveDate,
    span: sqlx::postgres::types::PgInterval,
    r: sqlx::postgres::types::PgRange<i32>,
}

async fn by_sqlx(url: &str) -> Result<(), sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(3).connect(url).await?;
    pool.execute("drop table if exists sx; drop type if exists sx_mood, sx_pair; create type sx_mood as enum ('sad', 'happy'); create type sx_pair as (x int, y text);
        create table sx (id bigserial primary key, name text not null, mood sx_mood not null, pair sx_pair, tags text[] not null default '{}', doc jsonb not null default '{}', n numeric(12,4), day date not null default '2024-02-03', span interval not null default '1 mon 2 days 3 sec', r int4range not null default '[1,5)')").await?;
    let id: (i64,) = sqlx::query_as(
        "insert into sx (name, mood, pair, tags, n) values ($1, $2, $3, $4, $5) returning id",
    )
    .bind("Ann")
    .bind(Mood::Happy)
    .bind(Pair { x: 1, y: "é".into() })
    .bind(vec!["a".to_string(), "b,c".into()])
    .bind("12.5".parse::<sqlx::types::BigDecimal>().unwrap())
    .fetch_one(&pool)
    .await?;
    println!("id {id:?}");
    said(
        "thing",
        sqlx::query_as::<_, Thing>("select * from sx where mood = $1")
            .bind(Mood::Happy)
            .fetch_all(&pool)
            .await,
    );
    said(
        "moods",
        sqlx::query_scalar::<_, Vec<Mood>>("select array_agg(mood) from sx").fetch_one(&pool).await,
    );
    said(
        "many",
        sqlx::query("insert into sx (name, mood) select * from unnest($1::text[], $2::sx_mood[])")
            .bind(vec!["x", "y"])
            .bind(vec![Mood::Sad, Mood::Sad])
            .execute(&pool)
            .await
            .map(|d| d.rows_affected()),
    );
    // What its macros ask at compile time.
    for q in [
        "select id, name, mood, pair, n, day + 1 as next, count(*) over () from sx where id = $1 and name like $2",
        "select s.id, t.name as other from sx s left join sx t on t.id = s.id + 1",
        "insert into sx (name, mood) values ($1, $2) returning *",
        "select null as nothing, 1 as one, coalesce(n, 0) from sx",
        "update sx set tags = $1, day = $2 where id = $3",
        "with a as (select id from sx) select a.id, b.name from a join sx b using (id)",
        "select 1 where $1",
    ] {
        let mut c = pool.acquire().await?;
        said(
            q,
            (&mut *c).describe(q).await.map(|d| {
                (
                    d.columns()
                        .iter()
                        .enumerate()
                        .map(|(at, c)| {
                            (c.name().to_string(), c.type_info().name().to_string(), d.nullable(at))
                        })
                        .collect::<Vec<_>>(),
                    d.parameters().map(|p| format!("{p:?}")),
                )
            }),
        );
        said("prepared", (&mut *c).prepare(q).await.map(|s| s.columns().len()));
    }
    let e = sqlx::query("insert into sx (id, name, mood) values (1, 'x', 'sad')")
        .execute(&pool)
        .await
        .unwrap_err();
    let d = e.as_database_error().unwrap();
    println!(
        "duplicate {:?} {:?} {} {:?}",
        d.code(),
        d.constraint(),
        d.is_unique_violation(),
        d.table()
    );
    let mut t = pool.begin().await?;
    let mut inner = t.begin().await?;
    said("fails", sqlx::query("select 1/0").execute(&mut *inner).await);
    inner.rollback().await?;
    said("goes on", sqlx::query("select 1").execute(&mut *t).await.map(|d| d.rows_affected()));
    t.commit().await?;
    let mut rows = sqlx::query("select g from generate_series(1, 5) g").fetch(&pool);
    let mut sum = 0;
    while let Some(r) = rows.try_next().await? {
        sum += r.get::<i32, _>(0);
    }
    println!("sum {sum}");
    let mut l = sqlx::postgres::PgListener::connect(url).await?;
    l.listen_all(["sx_a", "sx b"]).await?;
    pool.execute("select pg_notify('sx b', 'hi')").await?;
    said(
        "listener",
        tokio::time::timeout(Duration::from_secs(5), l.recv())
            .await
            .unwrap()
            .map(|n| (n.channel().to_string(), n.payload().to_string())),
    );
    let mut c = sqlx::PgConnection::connect(url).await?;
    let mut copy = c.copy_in_raw("copy sx (name, mood) from stdin (format csv)").await?;
    copy.send(&b"p,sad\nq,happy\n"[..]).await?;
    said("copy", copy.finish().await);
    said("ping", c.ping().await);
    // Migrations, with their lock and table.
    let dir = std::env::temp_dir().join(format!("sqlx-m-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    std::fs::write(
        dir.join("1_a.up.sql"),
        "create table sxm (a int); insert into sxm values (1); create index on sxm (a);",
    )?;
    std::fs::write(dir.join("1_a.down.sql"), "drop table sxm;")?;
    std::fs::write(
        dir.join("2_b.up.sql"),
        "-- no-transaction\nalter table sxm add column b text;",
    )?;
    std::fs::write(dir.join("2_b.down.sql"), "alter table sxm drop column b;")?;
    let m = sqlx::migrate::Migrator::new(dir.clone()).await?;
    said("migrate", m.run(&pool).await);
    said("again", m.run(&pool).await);
    said(
        "applied",
        sqlx::query_as::<_, (i64, String, bool)>(
            "select version, description, success from _sqlx_migrations order by 1",
        )
        .fetch_all(&pool)
        .await,
    );
    said("undo", m.undo(&pool, 0).await);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

mod cake {
    use sea_orm::entity::prelude::*;
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "so_cakes")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        #[sea_orm(unique)]
        pub name: String,
        #[sea_orm(column_type = "Decimal(Some((10, 2)))", nullable)]
        pub price: Option<f64>,
        pub meta: Json,
        pub kind: Kind,
        pub at: DateTimeUtc,
        pub u: Uuid,
        pub tags: Vec<String>,
    }
    #[derive(Debug, Clone, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
    #[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "so_kind")]
    pub enum Kind {
        #[sea_orm(string_value = "big")]
        Big,
        #[sea_orm(string_value = "small")]
        Small,
    }
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::fruit::Entity")]
        Fruit,
    }
    impl Related<super::fruit::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Fruit.def()
        }
    }
    impl ActiveModelBehavior for ActiveModel {}
}
mod fruit {
    use sea_orm::entity::prelude::*;
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "so_fruits")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub name: String,
        pub cake_id: Option<i32>,
    }
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::cake::Entity",
            from = "Column::CakeId",
            to = "super::cake::Column::Id",
            on_delete = "SetNull"
        )]
        Cake,
    }
    impl Related<super::cake::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Cake.def()
        }
    }
    impl ActiveModelBehavior for ActiveModel {}
}

async fn sea(url: &str) -> Result<(), sea_orm::DbErr> {
    let db = Database::connect(url).await?;
    let b = db.get_database_backend();
    let s = Schema::new(b);
    db.execute_unprepared("drop table if exists so_fruits, so_cakes; drop type if exists so_kind")
        .await?;
    for e in s.create_enum_from_entity(cake::Entity) {
        said("enum", db.execute(b.build(&e)).await.map(|_| ()));
    }
    for st in [s.create_table_from_entity(cake::Entity), s.create_table_from_entity(fruit::Entity)]
    {
        println!("{}", b.build(&st));
        said("table", db.execute(b.build(&st)).await.map(|_| ()));
    }
    let at: chrono::DateTime<chrono::Utc> = "2024-01-02T03:04:05Z".parse().unwrap();
    let cake = |name: &str| cake::ActiveModel {
        name: Set(name.into()),
        price: Set(Some(2.5)),
        meta: Set(serde_json::json!({"a": 1})),
        kind: Set(cake::Kind::Big),
        at: Set(at),
        u: Set(uuid::Uuid::from_u128(3)),
        tags: Set(vec!["x".into()]),
        ..Default::default()
    };
    said("insert", cake("A").insert(&db).await);
    said("same", cake("A").insert(&db).await.map_err(|e| format!("{:?}", e.sql_err())));
    said(
        "many",
        cake::Entity::insert_many([cake("B"), cake("C")])
            .on_conflict(
                sea_orm::sea_query::OnConflict::column(cake::Column::Name)
                    .update_column(cake::Column::Price)
                    .to_owned(),
            )
            .exec_with_returning(&db)
            .await
            .map(|m| m.id),
    );
    said(
        "fruit",
        fruit::Entity::insert_many([
            fruit::ActiveModel {
                name: Set("f".into()),
                cake_id: Set(Some(1)),
                ..Default::default()
            },
            fruit::ActiveModel { name: Set("g".into()), cake_id: Set(None), ..Default::default() },
        ])
        .exec(&db)
        .await
        .map(|r| r.last_insert_id),
    );
    said(
        "related",
        cake::Entity::find()
            .find_with_related(fruit::Entity)
            .order_by_asc(cake::Column::Id)
            .all(&db)
            .await
            .map(|v| v.into_iter().map(|(c, f)| (c.name, f.len())).collect::<Vec<_>>()),
    );
    said(
        "filter",
        cake::Entity::find()
            .filter(cake::Column::Kind.eq(cake::Kind::Big))
            .filter(cake::Column::Name.is_in(["A", "B"]))
            .count(&db)
            .await,
    );
    said(
        "page",
        cake::Entity::find()
            .order_by_desc(cake::Column::Id)
            .paginate(&db, 2)
            .fetch_page(1)
            .await
            .map(|v| v.len()),
    );
    let one = cake::Entity::find_by_id(1).one(&db).await?.unwrap();
    let mut m: cake::ActiveModel = one.into();
    m.kind = Set(cake::Kind::Small);
    said("update", m.update(&db).await.map(|m| m.kind));
    said(
        "transaction",
        db.transaction::<_, (), sea_orm::DbErr>(|t| {
            Box::pin(async move {
                cake::Entity::delete_many().exec(t).await?;
                Err(sea_orm::DbErr::Custom("no".into()))
            })
        })
        .await,
    );
    said("delete", cake::Entity::delete_by_id(1).exec(&db).await.map(|r| r.rows_affected));
    said("left", fruit::Entity::find().order_by_asc(fruit::Column::Id).all(&db).await);
    Ok(())
}

async fn discovered(url: &str) -> Result<(), sqlx::Error> {
    let pool = PgPoolOptions::new().connect(url).await?;
    let d = sea_schema::postgres::discovery::SchemaDiscovery::new(pool, "public");
    let mut all = d.discover().await?;
    all.tables.sort_by_key(|t| t.info.name.clone());
    for t in all
        .tables
        .iter()
        .filter(|t| t.info.name.starts_with("so_") || t.info.name == "sx" || t.info.name == "tp")
    {
        said("discovered", Ok::<_, String>(t));
        println!("written {}", t.write().to_string(sea_orm::sea_query::PostgresQueryBuilder));
    }
    said("enums", d.discover_enums().await);
    Ok(())
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    said("tokio-postgres", tokio(&url).await);
    said("sqlx", by_sqlx(&url).await);
    said("sea", sea(&url).await);
    said("sea-schema", discovered(&url).await);
}
