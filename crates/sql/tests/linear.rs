//! Work that must grow with its input and no faster.

use crate::harness::{database, rows, run, session, tag};

#[test]
fn many_families_are_deleted_by_a_list_of_keys() {
    let db = database();
    let s = &mut session(&db);
    run(
        s,
        "create table p (id int primary key);
         create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade",
    );
    for chunk in 0..10 {
        let ids: Vec<i32> = (0..600).map(|i| chunk * 600 + i).collect();
        let p: Vec<String> = ids.iter().map(|id| format!("({id})")).collect();
        let c: Vec<String> = ids.iter().map(|id| format!("({id}, 1)")).collect();
        run(s, &format!("insert into p values {}", p.join(", ")));
        run(s, &format!("insert into c values {}", c.join(", ")));
    }
    let ids: Vec<String> = (0..5_000).map(|id| id.to_string()).collect();
    let sql = format!("delete from p where id = any('{{{}}}')", ids.join(","));
    assert_eq!(tag(s, &sql), "DELETE 5000");
    assert_eq!(rows(s, "select count(*) from c"), ["1000"]);
}

#[test]
fn lists_of_keys_may_be_long() {
    let s = &mut session(&database());
    run(s, "create table t (a int, b int, n int, primary key (a, b)); create index on t (n)");
    for chunk in 0..10 {
        let values: Vec<String> = (0..1000).map(|i| format!("({}, {}, {i})", chunk, i)).collect();
        run(s, &format!("insert into t values {}", values.join(", ")));
    }
    let a: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let b: Vec<String> = (0..400).map(|i| i.to_string()).collect();
    let (a, b) = (a.join(","), b.join(","));
    let list = format!("select count(*) from t where a in ({a}) and b in ({b})");
    assert_eq!(rows(s, &list), ["4000"]);
    let any = format!("select count(*) from t where a = any('{{{a}}}') and b = any('{{{b}}}')");
    assert_eq!(rows(s, &any), ["4000"]);
    let many: Vec<String> = (0..40_000).map(|i| i.to_string()).collect();
    let many =
        format!("select count(*) from t where n = any('{{{}}}') and n >= 990", many.join(","));
    assert_eq!(rows(s, &many), ["100"]);
    run(
        s,
        "create table c (a int, b int, k int, primary key (a, b, k)) interleave in parent t on delete cascade;
         insert into c values (1, 1, 1), (1, 500, 1), (2, 2, 2)",
    );
    let joined = format!(
        "select t.a, t.b, c.k from t join c on c.a = t.a and c.b = t.b
         where t.a in ({a}) and t.b in ({b}) order by 1, 2"
    );
    assert_eq!(rows(s, &joined), ["1|1|1", "2|2|2"]);
    assert_eq!(
        tag(s, &format!("update t set n = n where a in ({a}) and b in ({b})")),
        "UPDATE 4000"
    );
    assert_eq!(tag(s, &format!("delete from t where a in ({a}) and b in ({b})")), "DELETE 4000");
    assert_eq!(rows(s, "select * from c where a = 1 and b = 500"), ["1|500|1"]);
}
