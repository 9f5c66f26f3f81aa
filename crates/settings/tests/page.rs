//! `docs/settings.md` is written from the registry.
//!
//! After a change: `WRITE_DOCS=1 cargo test --workspace --test page`.
#![expect(clippy::disallowed_methods, reason = "it reads and writes the page itself")]

use std::fmt::Write as _;
use std::path::Path;

use braid_settings::{Kind, settings};

fn page() -> String {
    let mut out = String::from(
        "# Cluster settings\n\n\
         What holds on all nodes: `SET CLUSTER SETTING name = value`, `RESET CLUSTER SETTING name`, \
         `SHOW CLUSTER SETTINGS`\n\
         ([operations](operations.md#what-holds-on-all-nodes)). A class of statements that is \
         switched off fails with 57000.\n\n\
         This page is written from `crates/settings/src/registry.rs` and `feature.rs`:\n\
         `WRITE_DOCS=1 cargo test --workspace --test page`.\n\n\
         | setting | type | default | what it is about |\n|---|---|---|---|\n",
    );
    for setting in settings() {
        let kind = match setting.kind {
            Kind::Bool => "boolean".to_string(),
            Kind::Integer(least, most) => format!("integer, {least} to {most}"),
            Kind::SessionDefault(name) => format!("as the session's `{name}`"),
        };
        let default = match setting.default {
            "" => "the session setting's own",
            value => value,
        };
        let _ = writeln!(out, "| `{}` | {kind} | {default} | {} |", setting.name, setting.about);
    }
    out
}

#[test]
fn the_page_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let wanted = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/settings.md is stale: run this test with WRITE_DOCS=1");
}
