//! Functions in SQL: what plans become of their calls, and what sessions see of each other's.
//! What they answer, beside PostgreSQL: `testscripts/postgres/sql_functions.txt`.

use crate::harness::Db;

/// Items with 3 parts each.
fn items(n: usize) -> Db {
    let mut db = Db::new();
    db.run(
        "create table item (id int primary key, name text);
         create table part (item int, n int, weight int, primary key (item, n));
         create function heavier(a int, b int) returns bool language sql immutable
           as $$ select a > b $$;
         create function weight(i int) returns bigint language sql stable
           as $$ select sum(weight) from part where item = i $$;
         create function parts(i int) returns table (n int, weight int) language sql stable
           as $$ select n, weight from part where item = i $$",
    );
    db.run(&format!(
        "insert into item select i, 'item ' || i from generate_series(1, {n}) i;
         insert into part select i, k, i % 7 + k from generate_series(1, {n}) i, \
         generate_series(1, 3) k"
    ));
    db
}

#[test]
fn a_call_is_the_expression_that_its_body_is() {
    let mut db = items(100);
    db.run("create function same(i int) returns int language sql immutable as 'select i'");
    let plain = db.run("explain select name from item where id = 7");
    let called = db.run("explain select name from item where id = same(7)");
    assert_eq!(plain, called);
    let called = db.run("explain select name from item where same(id) = 7");
    assert_eq!(plain, called, "a key condition through a function");
    assert!(!plain.join("\n").contains("general"), "{plain:?}");
}

#[test]
fn a_query_as_a_body_is_a_join_like_a_subquery() {
    let mut db = items(10_000);
    db.run("analyze");
    let sum = "select sum(w) from (select weight(id) as w from item) x";
    let written = "select sum(w) from (select (select sum(weight) from part where item = id) as w \
                   from item) x";
    assert_eq!(db.run(sum), db.run(written));
    let (one, other) = (db.run(&format!("explain {sum}")), db.run(&format!("explain {written}")));
    let shape = |lines: &[String]| {
        let operator = |l: &String| l.split_whitespace().next().map(str::to_string);
        lines.iter().filter_map(operator).collect::<Vec<_>>()
    };
    assert_eq!(shape(&one), shape(&other), "{one:#?}\n{other:#?}");
    assert_eq!(db.run("select count(*), sum(p.weight) from item, parts(id) p"), ["30000|149994"]);
    assert_eq!(db.run("select count(*) from item where heavier(weight(id)::int, 23)"), ["1428"]);
}

#[test]
fn sessions_see_a_function_as_of_their_transactions() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let mut a = items(3);
        let mut b = a.another();
        b.run("prepare p as select weight(1)");
        assert_eq!(b.run("execute p"), ["9"]);
        b.run(&format!("begin isolation level {level}; select count(*) from item"));
        let replaced = "create or replace function weight(i int) returns bigint language sql \
                        stable as $$ select -1::bigint $$";
        a.run(&format!("begin; {replaced}"));
        assert_eq!(a.run("select weight(1)"), ["-1"], "its own change");
        assert_eq!(b.run("execute p"), ["9"], "not committed");
        a.run("commit");
        let seen = b.run("execute p");
        assert!(seen == ["9"] || level == "read committed" && seen == ["-1"], "{level}: {seen:?}");
        b.run("commit");
        assert_eq!(b.run("execute p"), ["-1"]);
        a.run("begin; drop function weight(int)");
        assert_eq!(a.try_run("select weight(1)").unwrap_err().state().0, "42883");
        a.run("rollback");
        assert_eq!(a.run("select weight(1)"), ["-1"]);
    }
}

#[test]
fn recursion_ends() {
    let mut db = Db::new();
    db.run(
        "create function down(n int) returns int language sql
           as $$ select case when n <= 0 then 0 else down(n - 1) end $$;
         create function up(n int) returns int language sql as $$ select up(n + 1) $$;
         create function counted(n int) returns bigint language sql
           as $$ select count(*) from generate_series(1, n) $$",
    );
    assert_eq!(db.run("select down(50)"), ["0"]);
    for sql in ["select up(1)", "select n, up(n) from generate_series(1, 3) n"] {
        assert_eq!(db.try_run(sql).unwrap_err().state().0, "54001", "{sql}");
    }
    let itself = "create or replace function counted(n int) returns bigint language sql
                  as $$ select counted(n - 1) from generate_series(1, n) $$";
    assert_eq!(db.try_run(itself).unwrap_err().state().0, "54001");
}

#[test]
fn what_is_not_here_is_refused_with_a_hint() {
    let mut db = items(1);
    for sql in [
        "create function f() returns int language plpgsql as 'begin return 1; end'",
        "create function f() returns int language sql as \
         'insert into item values (5) returning id'",
        "create function f() returns int language sql as 'select 1; select 2'",
        "create function f(anyelement) returns anyelement language sql as 'select $1'",
        "create function f() returns record language sql as 'select 1, 2'",
        "create function f() returns int language sql as 'select 1' set search_path = x",
        "create function sum(text) returns text language sql as 'select $1'",
        "create index on item ((heavier(id, 1)))",
        "select * from parts(1) with ordinality",
        "alter table item add check (weight(id) > 0)",
        "alter table item alter column name set default weight(1)",
    ] {
        let e = db.try_run(sql).expect_err(sql);
        assert_eq!(e.state().0, "0A000", "{sql}: {e}");
    }
}

#[test]
fn catalogs_show_functions_as_dumps_and_psql_ask_for_them() {
    let mut db = items(1);
    db.run("comment on function heavier(int, int) is 'more'");
    db.run(
        "create function several(a int, inout b text, variadic c int[], out d date) language sql
           immutable strict parallel safe cost 5 as $x$ select b, current_date $x$;
         create function five() returns int return 2 + 3",
    );
    db.check(&[
        (
            "select pg_get_functiondef('weight'::regproc)",
            "CREATE OR REPLACE FUNCTION public.weight(i integer)\n RETURNS bigint\n LANGUAGE sql\n \
             STABLE\nAS $function$ select sum(weight) from part where item = i $function$\n",
        ),
        ("select pg_get_function_result('parts'::regproc)", "TABLE(n integer, weight integer)"),
        (
            "select pg_get_function_arguments('several'::regproc), \
             pg_get_function_result('several'::regproc)",
            "a integer, INOUT b text, VARIADIC c integer[], OUT d date|record",
        ),
        (
            "select proargtypes, proallargtypes, proargmodes, proargnames, provolatile, \
             proisstrict, proparallel, procost, pronargs from pg_proc where proname = 'several'",
            "23 25 1007|{23,25,1007,1082}|{i,b,v,o}|{a,b,c,d}|i|t|s|5|3",
        ),
        ("select 'heavier(int, int)'::regprocedure", "heavier(integer,integer)"),
        ("select obj_description('heavier'::regproc, 'pg_proc')", "more"),
        ("select five(), pg_get_function_sqlbody('five'::regproc)", "5|RETURN 2 + 3"),
        (
            "select routine_name, data_type, external_language from information_schema.routines \
             where routine_schema = 'public' order by 1",
            "five|integer|SQL; heavier|boolean|SQL; parts|record|SQL; several|record|SQL; \
             weight|bigint|SQL",
        ),
        (
            "select parameter_name, parameter_mode, data_type, ordinal_position \
             from information_schema.parameters where specific_name like 'several%' order by 4",
            "a|IN|integer|1; b|INOUT|text|2; c|IN|ARRAY|3; d|OUT|date|4",
        ),
    ]);
}
