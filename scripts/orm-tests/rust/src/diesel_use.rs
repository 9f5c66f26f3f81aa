//! Diesel: migrations, its query language, types, upserts, errors.

use bigdecimal::BigDecimal;
use chrono::{NaiveDate, NaiveDateTime};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Text};
use diesel_migrations::{FileBasedMigrations, MigrationHarness};
use uuid::Uuid;

use crate::told;

diesel::table! {
    d_authors (id) {
        id -> Int4,
        name -> Varchar,
        born -> Nullable<Date>,
        score -> Numeric,
        tags -> Array<Nullable<Text>>,
        doc -> Jsonb,
        token -> Uuid,
        raw -> Nullable<Bytea>,
        at -> Timestamp,
        ratio -> Float8,
    }
}

diesel::table! {
    d_books (id) {
        id -> Int8,
        author_id -> Int4,
        title -> Text,
    }
}

diesel::joinable!(d_books -> d_authors (author_id));
diesel::allow_tables_to_appear_in_same_query!(d_authors, d_books);

#[derive(Queryable, Selectable, Insertable, AsChangeset, Identifiable, Debug, PartialEq, Clone)]
#[diesel(table_name = d_authors)]
struct Author {
    id: i32,
    name: String,
    born: Option<NaiveDate>,
    score: BigDecimal,
    tags: Vec<Option<String>>,
    doc: serde_json::Value,
    token: Uuid,
    raw: Option<Vec<u8>>,
    at: NaiveDateTime,
    ratio: f64,
}

#[derive(Queryable, Selectable, Identifiable, Associations, Insertable, Debug)]
#[diesel(table_name = d_books, belongs_to(Author))]
struct Book {
    id: i64,
    author_id: i32,
    title: String,
}

#[derive(QueryableByName, Debug)]
#[allow(dead_code)]
struct Counted {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    n: i64,
}

const UP: &str = "
    CREATE TABLE d_authors (
        id SERIAL PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE, born DATE,
        score NUMERIC(8, 2) NOT NULL DEFAULT 1.5, tags TEXT[] NOT NULL DEFAULT '{}',
        doc JSONB NOT NULL DEFAULT '{}', token UUID NOT NULL, raw BYTEA,
        at TIMESTAMP NOT NULL DEFAULT '2020-01-02 03:04:05.678901',
        ratio FLOAT8 NOT NULL DEFAULT 0.1
    );
    CREATE TABLE d_books (
        id BIGSERIAL PRIMARY KEY, author_id INT NOT NULL REFERENCES d_authors ON DELETE CASCADE,
        title TEXT NOT NULL CHECK (title <> '')
    );
    CREATE INDEX d_books_author ON d_books (author_id);";

fn author(id: i32, name: &str) -> Author {
    Author {
        id,
        name: name.into(),
        born: NaiveDate::from_ymd_opt(1900, 2, 28),
        score: "12.50".parse().expect("a number"),
        tags: vec![Some("a".into()), None, Some("b,\"c\"".into())],
        doc: serde_json::json!({"k": [1, null, "x"]}),
        token: Uuid::from_u128(0x1234),
        raw: Some(vec![0, 255, 92]),
        at: NaiveDate::from_ymd_opt(2024, 2, 29)
            .and_then(|d| d.and_hms_micro_opt(23, 59, 59, 7))
            .expect("a time"),
        ratio: 1.0 / 3.0,
    }
}

fn migrated(db: &mut PgConnection) {
    let folder = std::env::temp_dir().join(format!("diesel-{}", std::process::id()));
    let one = folder.join("migrations/2026-01-01-000000_first");
    std::fs::create_dir_all(&one).expect("a folder");
    std::fs::write(one.join("up.sql"), UP).expect("a file");
    std::fs::write(one.join("down.sql"), "DROP TABLE d_books; DROP TABLE d_authors;")
        .expect("a file");
    let all = || FileBasedMigrations::from_path(folder.join("migrations")).expect("migrations");
    let names = |r: Result<Vec<diesel::migration::MigrationVersion<'_>>, _>| {
        r.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    told("d-pending", db.has_pending_migration(all()).map_err(|e| e.to_string()));
    told("d-up", names(db.run_pending_migrations(all())).map_err(|e| e.to_string()));
    told("d-applied", names(db.applied_migrations()).map_err(|e| e.to_string()));
    told(
        "d-redo",
        db.revert_last_migration(all()).map(|v| v.to_string()).map_err(|e| e.to_string()),
    );
    told("d-again", names(db.run_pending_migrations(all())).map_err(|e| e.to_string()));
    let _ = std::fs::remove_dir_all(folder);
}

fn errors(db: &mut PgConnection) {
    let shown = |r: Result<usize, Error>| match r {
        Err(Error::DatabaseError(kind, of)) => format!(
            "{kind:?} {} {:?} {:?} {:?} {:?}",
            of.message(),
            of.details(),
            of.table_name(),
            of.column_name(),
            of.constraint_name()
        ),
        other => format!("{other:?}"),
    };
    let insert = diesel::insert_into(d_authors::table);
    println!("d-unique {}", shown(insert.values(author(9, "ann")).execute(db)));
    let orphan = Book { id: 9, author_id: 99, title: "x".into() };
    println!("d-foreign {}", shown(diesel::insert_into(d_books::table).values(orphan).execute(db)));
    let empty = Book { id: 9, author_id: 1, title: String::new() };
    println!("d-check {}", shown(diesel::insert_into(d_books::table).values(empty).execute(db)));
    let none = (d_authors::name.eq("x"),);
    println!("d-null {}", shown(diesel::insert_into(d_authors::table).values(none).execute(db)));
    println!("d-syntax {}", shown(diesel::sql_query("SELEC 1").execute(db)));
}

pub fn run(url: &str) {
    let db = &mut PgConnection::establish(url).expect("a connection");
    migrated(db);
    read(db);
    changed(db);
    errors(db);
    transactions(db);
}

fn read(db: &mut PgConnection) {
    let (ann, bob) = (author(1, "ann"), author(2, "bob"));
    let insert = diesel::insert_into(d_authors::table).values(vec![ann.clone(), bob]);
    told("d-insert", insert.returning(Author::as_returning()).get_results(db));
    told(
        "d-alike",
        d_authors::table.find(1).select(Author::as_select()).first(db).map(|a| a == ann),
    );
    let books: Vec<Book> = (1..=4)
        .map(|id| Book { id, author_id: 1 + id as i32 % 2, title: format!("t{id}") })
        .collect();
    told("d-books", diesel::insert_into(d_books::table).values(&books).execute(db));
    let joined = d_authors::table.inner_join(d_books::table).order(d_books::id.desc());
    told("d-join", joined.select((d_authors::name, d_books::title)).load::<(String, String)>(db));
    let left = d_authors::table
        .left_join(d_books::table.on(d_books::author_id.eq(d_authors::id).and(d_books::id.gt(3))));
    let named = left.select((d_authors::name, d_books::title.nullable())).order(d_authors::id);
    told("d-left", named.load::<(String, Option<String>)>(db));
    associated(db);
    told(
        "d-like",
        d_authors::table.filter(d_authors::name.ilike("A%")).select(d_authors::id).load::<i32>(db),
    );
    told(
        "d-contains",
        d_authors::table.filter(d_authors::tags.contains(vec!["a"])).count().get_result::<i64>(db),
    );
    told(
        "d-json",
        d_authors::table
            .select(d_authors::doc.retrieve_as_object("k"))
            .first::<serde_json::Value>(db),
    );
    told(
        "d-sum",
        d_authors::table.select(diesel::dsl::sum(d_authors::score)).first::<Option<BigDecimal>>(db),
    );
}

fn associated(db: &mut PgConnection) {
    let authors = d_authors::table
        .select(Author::as_select())
        .order(d_authors::id)
        .load(db)
        .expect("authors");
    let of = Book::belonging_to(&authors)
        .select(Book::as_select())
        .order(d_books::id)
        .load(db)
        .expect("books");
    let grouped = of.grouped_by(&authors);
    told::<_, ()>("d-groups", Ok(grouped.iter().map(Vec::len).collect::<Vec<_>>()));
    told("d-in", d_books::table.filter(d_books::id.eq_any([1, 3])).count().get_result::<i64>(db));
}

fn changed(db: &mut PgConnection) {
    let set = (
        d_authors::score.eq(d_authors::score + BigDecimal::from(1)),
        d_authors::born.eq(None::<NaiveDate>),
    );
    told(
        "d-update",
        diesel::update(d_authors::table.find(2))
            .set(set)
            .returning(d_authors::score)
            .get_result::<BigDecimal>(db),
    );
    told("d-save", author(2, "bert").save_changes::<Author>(db).map(|a| a.name));
    let upsert =
        diesel::insert_into(d_authors::table).values(author(7, "ann")).on_conflict(d_authors::name);
    let done = upsert
        .do_update()
        .set(d_authors::ratio.eq(diesel::upsert::excluded(d_authors::ratio)))
        .execute(db);
    told("d-upsert", done);
    let nothing =
        diesel::insert_into(d_authors::table).values(author(1, "zoe")).on_conflict_do_nothing();
    told("d-nothing", nothing.execute(db));
    told(
        "d-distinct",
        d_books::table
            .distinct_on(d_books::author_id)
            .order((d_books::author_id, d_books::id.desc()))
            .select(d_books::id)
            .load::<i64>(db),
    );
    told(
        "d-lock",
        d_authors::table
            .select(d_authors::id)
            .order(d_authors::id)
            .for_update()
            .skip_locked()
            .load::<i32>(db),
    );
    let sql = "SELECT a.name, count(*) AS n FROM d_authors a JOIN d_books b ON b.author_id = a.id \
        WHERE a.id < $1 GROUP BY 1 ORDER BY 1";
    told("d-raw", diesel::sql_query(sql).bind::<BigInt, _>(5_i64).load::<Counted>(db));
}

fn transactions(db: &mut PgConnection) {
    let rolled = db.transaction::<(), _, _>(|db| {
        diesel::delete(d_authors::table).execute(db)?;
        let inner =
            db.transaction::<usize, Error, _>(|db| diesel::sql_query("SELECT 1 / 0").execute(db));
        told("d-inner", inner.map_err(|e| e.to_string()));
        told("d-within", d_authors::table.count().get_result::<i64>(db));
        Err(Error::RollbackTransaction)
    });
    told("d-rolled", rolled);
    told("d-after", d_authors::table.count().get_result::<i64>(db));
    let serial = db
        .build_transaction()
        .serializable()
        .read_only()
        .run(|db| d_books::table.count().get_result::<i64>(db));
    told("d-serializable", serial);
    told("d-delete", diesel::delete(d_authors::table.find(1)).execute(db));
    told("d-cascade", d_books::table.count().get_result::<i64>(db));
    // What `diesel print-schema` asks.
    let tables = "SELECT c.relname AS name, count(a.attname) AS n FROM pg_class c \
        JOIN pg_namespace s ON s.oid = c.relnamespace \
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
        WHERE s.nspname = 'public' AND c.relkind IN ('r', 'v', 'm', 'p') GROUP BY 1 ORDER BY 1";
    told("d-tables", diesel::sql_query(tables).load::<Counted>(db));
}
