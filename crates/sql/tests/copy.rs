//! COPY and IMPORT.

mod harness;

use braid_sql::{Outcome, Session};
use braid_types::SqlResult;
use harness::{database, error, rows, run, session, tag};

fn copy_in(s: &mut Session, sql: &str, pieces: &[&[u8]]) -> SqlResult<u64> {
    let statement = s.parse_script(sql)?.remove(0);
    let p = s.prepare(statement, &[])?;
    let Outcome::CopyIn(mut c) = s.execute(&p, vec![])? else { panic!("not a COPY FROM STDIN") };
    for piece in pieces {
        c.feed(piece)?;
    }
    c.finish()
}

fn copy_out(s: &mut Session, sql: &str) -> Vec<u8> {
    let statement = s.parse_script(sql).unwrap().remove(0);
    let p = s.prepare(statement, &[]).unwrap();
    let Outcome::CopyOut(mut c) = s.execute(&p, vec![]).unwrap() else { panic!("not a COPY TO") };
    let (mut out, mut row) = (Vec::new(), Vec::new());
    while c.next_row(&mut row).unwrap() {
        out.extend_from_slice(&row);
    }
    out
}

#[test]
fn text_csv_and_binary_round_trip() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key); insert into p values (1), (2)");
    run(
        s,
        "create table t (id int, n int, x text, d date default '2020-01-01', primary key (id, n)) \
            interleave in parent p on delete cascade",
    );
    let n = copy_in(
        s,
        "copy t (id, n, x) from stdin",
        &[b"1\t1\ta\\tb\n1\t2", b"\t\\N\n2\t1\tz\n\\.\n"],
    );
    assert_eq!(n.unwrap(), 3);
    assert_eq!(rows(s, "select * from t order by id, n")[1], "1|2|NULL|2020-01-01");
    for format in ["text", "csv", "binary"] {
        let data = copy_out(s, &format!("copy t to stdout (format {format})"));
        run(s, "delete from t");
        let n = copy_in(s, &format!("copy t from stdin with (format {format})"), &[&data]);
        assert_eq!(n.unwrap(), 3, "{format}");
        assert_eq!(rows(s, "select x from t where id = 1 and n = 1"), ["a\tb"]);
    }
    let data = copy_out(s, "copy (select n, x from t where id = 2) to stdout csv header");
    assert_eq!(String::from_utf8(data).unwrap(), "n,x\n1,z\n");
}

#[test]
fn errors_name_the_place_and_nothing_stays() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, n int)");
    let e = copy_in(s, "copy t from stdin csv", &[b"1,1\n2,x\n"]).unwrap_err();
    assert_eq!(e.state().0, "22P02");
    assert!(e.detail().unwrap().contains("COPY t, line 2, column n"), "{e:?}");
    let e = copy_in(s, "copy t from stdin csv", &[b"1,1\n1,2\n"]).unwrap_err();
    assert!(e.detail().unwrap().contains("line 2"), "{e:?}");
    assert_eq!(copy_in(s, "copy t from stdin csv", &[b"1\n"]).unwrap_err().state().0, "22P04");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
    run(s, "begin");
    assert!(copy_in(s, "copy t from stdin csv", &[b"3,3\n"]).is_ok());
    run(s, "rollback");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
}

#[test]
fn import_reads_files() {
    let dir = std::env::temp_dir().join(format!("braid-sql-import-{}", std::process::id()));
    braid_env::fs::FileSystem::create_dir_all(&braid_env::fs::DiskFs, &dir).unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        let _old = braid_env::fs::FileSystem::remove(&braid_env::fs::DiskFs, &path);
        let f = braid_env::fs::FileSystem::create(&braid_env::fs::DiskFs, &path).unwrap();
        f.write_at(text.as_bytes(), 0).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (a, b) = (put("a.csv", "id;x\n1;\"o;ne\"\n2;-\n"), put("b.csv", "id;x\n3;c\nfour;d\n"));
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, x text)");
    let sql =
        format!("import into t csv data ('{a}') with delimiter = ';', nullif = '-', skip = '1'");
    assert_eq!(tag(s, &sql), "IMPORT 2");
    assert_eq!(rows(s, "select * from t order by id"), ["1|o;ne", "2|NULL"]);
    run(s, "delete from t");
    let e =
        error(s, &format!("import into t csv data ('{a}', '{b}') with delimiter = ';', header"));
    let detail = e.detail().unwrap();
    assert!(detail.contains("b.csv") && detail.contains("line 3, column id"), "{detail}");
    assert_eq!(rows(s, "select count(*) from t"), ["0"]);
}

#[test]
fn header_match_compares_names() {
    let s = &mut session(&database());
    run(s, "create table t (id int primary key, n int)");
    let sql = "copy t from stdin (format csv, header match)";
    assert_eq!(copy_in(s, sql, &[b"id,n\n1,1\n"]).unwrap(), 1);
    for wrong in ["n,id\n2,2\n", "id\n2\n", "id,x\n2,2\n"] {
        let e = copy_in(s, sql, &[wrong.as_bytes()]).unwrap_err();
        assert_eq!(e.state().0, "22P04", "{wrong}: {e}");
    }
    assert_eq!(copy_in(s, "copy t from stdin csv header", &[b"x,y\n3,3\n"]).unwrap(), 1);
    assert_eq!(rows(s, "select id from t order by id"), ["1", "3"]);
}
