//! Statements that change descriptors. The changes themselves: [`crate::ddl`].

use braid_parser::{Access, CollationStatement, Kind};
use braid_settings::Feature;
use sqlparser::ast::{ObjectType, Statement as Sql};

use super::entry::{Entry, work};
use super::several;
use crate::ddl::access::roles;
use crate::ddl::functions::extensions;
use crate::ddl::{
    alter, collation, comment, composite, create_table, domain, drop, functions, index, moves,
    online, other_kinds, partitions, schema, sequence, truncate, user_type, view,
    view::materialized,
};

/// DROP of one kind of object.
macro_rules! dropping {
    ($kind:ident) => {
        work!(Sql Sql::Drop {
            object_type: ObjectType::$kind, if_exists, names, cascade, ..
        } => |c| drop::run(c, ObjectType::$kind, *if_exists, names, *cascade))
    };
}

pub(super) static ENTRIES: &[Entry] = &[
    Entry::change(
        "CREATE TABLE",
        "create table n (a int primary key)",
        "a new table; INTERLEAVE IN PARENT keeps its rows inside of another's; AS",
        work!(Kind::CreateTable(t) => |c| create_table::run(c, t)),
    ),
    Entry::change(
        "CREATE TABLE",
        "create table n partition of parts for values in (7)",
        "a part of a table that is declared with PARTITION BY, with a name of its own",
        work!(Kind::CreatePartition(p) => |c| partitions::create(c, p)),
    ),
    Entry::change(
        "ALTER TABLE",
        "alter table parts detach partition p1",
        "ATTACH PARTITION and DETACH PARTITION: a table becomes a partition, and the other way \
         round; of indexes ALTER INDEX .. ATTACH PARTITION",
        work!(Kind::Partition(change) => |c| partitions::change(c, change)),
    ),
    Entry::change(
        "CREATE INDEX",
        "create index on t (b)",
        "a new index; INCLUDE, INTERLEAVE IN; writers go on meanwhile",
        work!(Kind::CreateIndex(i) => |c| index::run(c, i)),
    )
    .of(Feature::CreateIndex)
    .in_steps(online::may_go_in_steps),
    Entry::change(
        "ALTER TABLE",
        "alter table t add column n int",
        "columns, constraints, names of a table",
        work!(Sql Sql::AlterTable(a) => |c| alter::run(c, a)),
    )
    .in_steps(online::may_go_in_steps),
    Entry::change(
        "ALTER TABLE",
        "alter table t set schema x",
        "where a table lies: SET SCHEMA, SET INTERLEAVE IN, DROP INTERLEAVE, SET ON DELETE, ALTER \
         PRIMARY KEY USING COLUMNS; SET STATISTICS, DROP EXPRESSION, ALTER CONSTRAINT",
        work!(Kind::AlterTableOwn(name, if_exists, op) => |c| {
            alter::place(c, name, *if_exists, op)
        }),
    )
    .in_steps(moves::may_go_in_steps),
    Entry::change(
        "ALTER TABLE",
        "alter table t set (fillfactor = 70)",
        "accepted: SET (..), RESET (..), SET LOGGED, SET TABLESPACE, CLUSTER ON, ALTER COLUMN .. \
         SET STORAGE and SET COMPRESSION; of indexes ALTER INDEX .. SET (..). \
         DISABLE TRIGGER ALL: foreign keys are not asked until ENABLE",
        work!(Kind::StorageOptions(options) => |c| alter::storage(c, options)),
    ),
    Entry::change(
        "ALTER TABLE",
        "alter table t add column n int, alter a set statistics 50",
        "several of these actions, one after the other, all or none",
        work!(Kind::AlterTableParts(all) => |c| several::alter_table(c, all)),
    ),
    Entry::change(
        "ALTER INDEX",
        "alter index i rename to j",
        "the name of an index",
        work!(Kind::RenameIndex { index, if_exists, new } => |c| {
            index::alter(c, index, *if_exists, new)
        }),
    ),
    Entry::change(
        "ALTER INDEX",
        "alter index i add stored column e",
        "ADD or DROP STORED COLUMN (also INCLUDE): which columns entries hold besides their key",
        work!(Kind::StoredColumn { index, column, add } => |c| {
            index::store_column(c, index, column, *add)
        }),
    ),
    Entry::change(
        "TRUNCATE TABLE",
        "truncate t",
        "takes all rows at once, whatever their number; RESTART IDENTITY, CASCADE",
        work!(Sql Sql::Truncate(t) => |c| truncate::run(c, t)),
    )
    .of(Feature::Truncate),
    Entry::change(
        "CREATE SEQUENCE",
        "create sequence n",
        "a new source of numbers",
        work!(Kind::CreateSequence { name, if_not_exists, temporary, change } => |c| {
            sequence::create(c, name, (*if_not_exists, *temporary), change)
        }),
    ),
    Entry::change(
        "ALTER SEQUENCE",
        "alter sequence s restart",
        "options, position, owner, name and schema of a sequence",
        work!(Kind::AlterSequence(name, if_exists, s) => |c| {
            sequence::alter(c, name, *if_exists, s)
        }),
    ),
    Entry::change(
        "CREATE VIEW",
        "create view n as select a from t",
        "a query with a name",
        work!(Sql Sql::CreateView(v) => |c| view::create_view(c, v)),
    ),
    Entry::change(
        "CREATE MATERIALIZED VIEW",
        "create materialized view n as select a from t with no data",
        "a query with a name, and its rows as of now; WITH NO DATA",
        work!(Kind::CreateMaterialized(m) => |c| materialized::create(c, m)),
    )
    .of(Feature::MaterializedView),
    Entry::change(
        "REFRESH MATERIALIZED VIEW",
        "refresh materialized view mv",
        "the rows of its query as of now, all at once; CONCURRENTLY, WITH NO DATA",
        work!(Kind::Refresh(r) => |c| materialized::refresh(c, r)),
    )
    .of(Feature::MaterializedView),
    Entry::change(
        "ALTER MATERIALIZED VIEW",
        "alter materialized view mv rename to n",
        "names and schema of a materialized view; SET STATISTICS",
        work!(Kind::AlterMaterialized(name, if_exists, change) => |c| {
            materialized::alter(c, name, *if_exists, change)
        }),
    )
    .of(Feature::MaterializedView),
    Entry::change(
        "ALTER VIEW",
        "alter view v rename to n",
        "names and schema of a view",
        work!(Kind::AlterView(name, if_exists, change) => |c| {
            other_kinds::alter_view(c, name, *if_exists, change)
        }),
    ),
    Entry::change(
        "CREATE TYPE",
        "create type n as enum ('one', 'two')",
        "a new enum type, or a composite one: `AS (x int, y text)`",
        work!(Sql Sql::CreateType { name, representation } => |c| {
            user_type::create(c, name, representation.as_ref())
        }),
    ),
    Entry::change(
        "ALTER TYPE",
        "alter type m add value 'more'",
        "values of an enum type, at any place among the others, and names; no row is touched",
        work!(Sql Sql::AlterType(a) => |c| user_type::alter(c, a)),
    ),
    Entry::change(
        "ALTER TYPE",
        "alter type m set schema x",
        "where a type lies",
        work!(Kind::AlterTypeSchema(name, to) => |c| user_type::set_schema(c, name, to)),
    ),
    Entry::change(
        "ALTER TYPE",
        "alter type comp rename attribute x to y",
        "fields of a composite type; while a table has values of it, names and new ones only",
        work!(Kind::AlterAttributes(name, changes) => |c| composite::alter(c, name, changes)),
    ),
    Entry::change(
        "CREATE DOMAIN",
        "create domain n as int check (value > 0)",
        "a type with conditions and a default, over another",
        work!(Kind::CreateDomain(d) => |c| domain::create(c, d)),
    ),
    Entry::change(
        "ALTER DOMAIN",
        "alter domain p set not null",
        "conditions, default and name of a domain; rows there are keep to new conditions",
        work!(Kind::AlterDomain(name, change) => |c| domain::alter(c, name, change)),
    ),
    Entry::change(
        "CREATE FUNCTION",
        "create function n(a int) returns int language sql as 'select a + 1'",
        "a query with arguments, of which calls become a part; OR REPLACE, RETURNS SETOF and \
         TABLE, LANGUAGE sql alone",
        work!(Kind::CreateFunction(f) => |c| functions::create(c, f)),
    )
    .of(Feature::Function),
    Entry::change(
        "ALTER FUNCTION",
        "alter function fn(int) stable",
        "name, owner, schema and clauses of a function",
        work!(Kind::AlterFunction(of, change) => |c| functions::alter(c, of, change)),
    )
    .of(Feature::Function),
    Entry::change(
        "DROP FUNCTION",
        "drop function fn(int)",
        "functions; CASCADE takes along views, defaults and conditions that call them",
        work!(Kind::DropFunctions(all, if_exists, cascade) => |c| {
            functions::drop(c, all, *if_exists, *cascade)
        }),
    )
    .of(Feature::Function),
    Entry::change(
        "DROP DOMAIN",
        "drop domain p",
        "domains; CASCADE takes along the columns that have them",
        work!(Kind::DropDomains(names, if_exists, cascade) => |c| {
            user_type::drop_domains(c, names, *if_exists, *cascade)
        }),
    ),
    Entry::change(
        "CREATE COLLATION",
        "create collation n (provider = icu, locale = 'sv')",
        "an order of texts: that of a locale, with settings; FROM another one",
        work!(Kind::Collation(s) if matches!(**s, CollationStatement::Create { .. }) => |c| {
            collation::run(c, s)
        }),
    ),
    Entry::change(
        "ALTER COLLATION",
        "alter collation co rename to n",
        "name and schema of a collation; REFRESH VERSION",
        work!(Kind::Collation(s) if matches!(**s, CollationStatement::Alter(..)) => |c| {
            collation::run(c, s)
        }),
    ),
    Entry::change(
        "DROP COLLATION",
        "drop collation co",
        "collations; CASCADE takes along the columns that have them",
        work!(Kind::Collation(s) if matches!(**s, CollationStatement::Drop { .. }) => |c| {
            collation::run(c, s)
        }),
    ),
    Entry::change(
        "CREATE SCHEMA",
        "create schema n",
        "a new place for relations",
        work!(Sql Sql::CreateSchema { schema_name, if_not_exists, .. } => |c| {
            schema::create_schema(c, schema_name, *if_not_exists)
        }),
    ),
    Entry::change(
        "CREATE SCHEMA",
        "create schema n create table m (a int primary key)",
        "a new place with tables, views, indexes, sequences and privileges in it",
        work!(Kind::CreateSchemaWith(all) => |c| several::create_schema(c, all)),
    ),
    Entry::change(
        "ALTER SCHEMA",
        "alter schema x rename to y",
        "the name of a schema",
        work!(Sql Sql::AlterSchema(a) => |c| schema::alter_schema(c, a)),
    ),
    Entry::change(
        "CREATE DATABASE",
        "create database n",
        "a new database",
        work!(Kind::CreateDatabase(name, if_not_exists) => |c| {
            schema::create_database(c, name, *if_not_exists)
        }),
    ),
    Entry::change(
        "DROP TABLE",
        "drop table t cascade",
        "tables with their rows; CASCADE takes along what depends on them",
        dropping!(Table),
    ),
    Entry::change("DROP INDEX", "drop index i", "indexes, also CONCURRENTLY", dropping!(Index)),
    Entry::change("DROP VIEW", "drop view v", "views", dropping!(View)),
    Entry::change(
        "DROP MATERIALIZED VIEW",
        "drop materialized view mv",
        "materialized views with their rows",
        dropping!(MaterializedView),
    ),
    Entry::change(
        "DROP TYPE",
        "drop type m",
        "types; CASCADE takes along the columns that have them",
        dropping!(Type),
    ),
    Entry::change("DROP SEQUENCE", "drop sequence s", "sequences", dropping!(Sequence)),
    Entry::change(
        "DROP SCHEMA",
        "drop schema x",
        "schemas; CASCADE takes along what lies in them",
        dropping!(Schema),
    ),
    Entry::change(
        "DROP DATABASE",
        "drop database d",
        "databases that nobody is connected to",
        dropping!(Database),
    ),
    Entry::change(
        "COMMENT",
        "comment on table t is 'rows'",
        "a text about an object; IS NULL takes it away",
        work!(Kind::Comment(statement) => |c| comment::comment(c, statement)),
    ),
    Entry::change(
        "DROP TRIGGER",
        "drop trigger if exists n on t",
        "there is none; also RULE, POLICY, AGGREGATE, OPERATOR, CAST, STATISTICS, PUBLICATION, \
         SERVER and others, with IF EXISTS",
        work!(Kind::DropAbsent(d) => |c| drop::absent(c, d)),
    ),
    Entry::change(
        "CREATE EXTENSION",
        "create extension if not exists plpgsql",
        "of what is built in: citext, pg_stat_statements, uuid-ossp, pgcrypto without what \
         encrypts; noted for `pg_extension`. plpgsql, for DO, is always there",
        work!(Sql Sql::CreateExtension(e) => |c| extensions::create(c, e)),
    ),
    Entry::change(
        "DROP EXTENSION",
        "drop extension if exists pgcrypto",
        "takes the note away; what is built in stays",
        work!(Sql Sql::DropExtension(d) => |c| extensions::drop(c, &d.names, d.if_exists)),
    ),
    Entry::change(
        "CREATE ROLE",
        "create role n login",
        "a role: users and groups; also CREATE USER, CREATE GROUP",
        work!(Kind::Access(a) if matches!(**a, Access::CreateRole(..)) => |c| roles::run(c, a)),
    )
    .of(Feature::Role),
    Entry::change(
        "ALTER ROLE",
        "alter role root superuser",
        "attributes, name, settings and members of a role",
        work!(Kind::Access(a) if matches!(**a, Access::AlterRole(..)) => |c| roles::run(c, a)),
    )
    .of(Feature::Role),
    Entry::change(
        "ALTER DATABASE",
        "alter database d set work_mem = '8MB'",
        "what sessions in a database begin with: SET and RESET",
        work!(Kind::Access(a) if matches!(**a, Access::AlterDatabase(..)) => |c| roles::run(c, a)),
    ),
    Entry::change(
        "DROP ROLE",
        "drop role if exists n",
        "roles that own nothing and were granted nothing",
        work!(Kind::Access(a) if matches!(**a, Access::DropRole(..)) => |c| roles::run(c, a)),
    )
    .of(Feature::Role),
    Entry::change(
        "GRANT",
        "grant select on t to root",
        "privileges and roles: kept and shown by the catalogs, not enforced yet; REVOKE",
        work!(Kind::Access(a) if is_grant(a) => |c| roles::run(c, a)),
    )
    .of(Feature::Role),
    Entry::change(
        "ALTER DEFAULT PRIVILEGES",
        "alter default privileges grant select on tables to public",
        "what is granted on objects to come",
        work!(Kind::Access(a) if matches!(**a, Access::DefaultPrivileges(_)) => |c| {
            roles::run(c, a)
        }),
    )
    .of(Feature::Role),
    Entry::change(
        "REASSIGN OWNED",
        "reassign owned by root to root",
        "gives all that roles own to another; DROP OWNED takes what they were granted",
        work!(Kind::Access(a) if is_about_owned(a) => |c| roles::run(c, a)),
    )
    .of(Feature::Role),
    Entry::change(
        "ALTER TABLE",
        "alter table t owner to root",
        "OWNER TO; the same of views, sequences, schemas, databases, types",
        work!(Kind::Owner(o) => |c| roles::change_owner(c, o)),
    ),
];

fn is_grant(a: &Access) -> bool {
    matches!(a, Access::Grant(_) | Access::GrantRole { .. })
}

fn is_about_owned(a: &Access) -> bool {
    matches!(a, Access::Reassign(..) | Access::DropOwned(..))
}
