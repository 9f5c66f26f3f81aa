//! What a server's sessions see of each other and of themselves, and settings for all of them.

use crate::support::Running;
use braid_server::{Server, ServerConfig};

#[test]
fn sessions_are_seen_at_rest_and_at_work() {
    let server = Running::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    let look = format!(
        "select state, wait_event, query, client_addr, client_port = {}, xact_start is null \
         from pg_stat_activity where pid = {}",
        other.socket.local_addr().expect("connected").port(),
        other.pid
    );
    let mut seen = |other: &mut crate::support::Talk, sql: &str| {
        if !sql.is_empty() {
            other.query(sql);
            other.until_ready();
        }
        one.query(&look);
        one.answer()
    };
    let row = |said: &str| {
        let from = said.find("Row(").expect("a row");
        said[from..].split(" Complete").next().unwrap_or_default().to_string()
    };
    assert_eq!(row(&seen(&mut other, "")), "Row(idle,ClientRead,,127.0.0.1,t,t)");
    let said = seen(&mut other, "select 7");
    assert_eq!(row(&said), "Row(idle,ClientRead,select 7,127.0.0.1,t,t)");
    let said = seen(&mut other, "begin; select 8");
    assert_eq!(row(&said), "Row(idle in transaction,ClientRead,select 8,127.0.0.1,t,f)");
    let said = seen(&mut other, "nonsense");
    let failed = "Row(idle in transaction (aborted),ClientRead,nonsense,127.0.0.1,t,f)";
    assert_eq!(row(&said), failed);
    let said = seen(&mut other, "rollback");
    assert_eq!(row(&said), "Row(idle,ClientRead,rollback,127.0.0.1,t,t)");
}

#[test]
fn time_in_which_a_portal_waits_is_not_the_statements() {
    let server = Running::new();
    let mut talk = server.connect();
    talk.parse("", "select * from generate_series(1, 5)");
    talk.bind("", &[]);
    talk.execute(2);
    talk.send(b'H', &[]);
    while talk.message().expect("an answer").0 != b's' {}
    std::thread::sleep(std::time::Duration::from_millis(400));
    talk.execute(0);
    talk.sync();
    talk.until_ready();
    talk.query(
        "select calls, rows, max_exec_time < 400 from pg_stat_statements \
         where query like '%generate_series%' and query not like '%pg_stat%'",
    );
    assert_eq!(talk.answer(), "Columns Row(1,5,t) Complete(SELECT 1) I");
}

#[test]
fn a_node_gives_its_sessions_settings_to_begin_with() {
    let server = Running::with(|config| {
        config.settings = vec![("Statement_Timeout".into(), "7s".into())];
    });
    let mut talk = server.connect();
    for (sql, want) in [
        ("show statement_timeout", "7s"),
        ("set statement_timeout = 1", ""),
        ("show statement_timeout", "1ms"),
        ("reset statement_timeout", ""),
        ("show statement_timeout", "7s"),
    ] {
        talk.query(sql);
        let said = talk.answer();
        assert!(want.is_empty() || said.contains(&format!("Row({want})")), "{sql}: {said}");
    }
    for (name, value) in [("statement_timeout", "soon"), ("no_such_setting", "1")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut config = ServerConfig::new(directory.path().join("store"));
        config.listen = "127.0.0.1:0".parse().expect("an address");
        config.http = None;
        config.settings = vec![(name.into(), value.into())];
        let refused = Server::start(config).err().expect("the setting is refused").to_string();
        assert!(refused.contains(name), "{refused}");
    }
}
