//! The keywords of SQL, as PostgreSQL 15 groups them: drivers ask which names need quotes.

use braid_types::Datum;

use crate::registry::{Rows, Table};

/// Words of one kind.
struct Group {
    /// Of PostgreSQL: U, C, T, R.
    code: &'static str,
    kind: &'static str,
    /// Whether one may name a column of a query without AS.
    bare: bool,
    words: &'static str,
}

const UNRESERVED: &str = "unreserved";
const NO_FUNCTION: &str = "unreserved (cannot be function or type name)";
const FUNCTION: &str = "reserved (can be function or type name)";
const RESERVED: &str = "reserved";

const GROUPS: [Group; 8] = [
    Group { code: "C", kind: NO_FUNCTION, bare: false, words: "char character precision" },
    Group {
        code: "C",
        kind: NO_FUNCTION,
        bare: true,
        words: "between bigint bit boolean coalesce dec decimal exists extract float greatest \
            grouping inout int integer interval least national nchar none normalize nullif \
            numeric out overlay position real row setof smallint substring time timestamp \
            treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest \
            xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable",
    },
    Group {
        code: "R",
        kind: RESERVED,
        bare: false,
        words: "array as create except fetch for from grant group having intersect into limit \
            offset on order returning to union where window with",
    },
    Group {
        code: "R",
        kind: RESERVED,
        bare: true,
        words: "all analyse analyze and any asc asymmetric both case cast check collate column \
            constraint current_catalog current_date current_role current_time \
            current_timestamp current_user default deferrable desc distinct do else end \
            false foreign in initially lateral leading localtime localtimestamp not null \
            only or placing primary references select session_user some symmetric table then \
            trailing true unique user using variadic when",
    },
    Group { code: "T", kind: FUNCTION, bare: false, words: "isnull notnull overlaps" },
    Group {
        code: "T",
        kind: FUNCTION,
        bare: true,
        words: "authorization binary collation concurrently cross current_schema freeze full \
            ilike inner is join left like natural outer right similar tablesample verbose",
    },
    Group {
        code: "U",
        kind: UNRESERVED,
        bare: false,
        words: "day filter hour minute month over second varying within without year",
    },
    Group {
        code: "U",
        kind: UNRESERVED,
        bare: true,
        words: "abort absolute access action add admin after aggregate also alter always \
            asensitive assertion assignment at atomic attach attribute backward before begin \
            breadth by cache call called cascade cascaded catalog chain characteristics \
            checkpoint class close cluster columns comment comments commit committed \
            compression configuration conflict connection constraints content continue \
            conversion copy cost csv cube current cursor cycle data database deallocate \
            declare defaults deferred definer delete delimiter delimiters depends depth \
            detach dictionary disable discard document domain double drop each enable \
            encoding encrypted enum escape event exclude excluding exclusive execute explain \
            expression extension external family finalize first following force forward \
            function functions generated global granted groups handler header hold identity \
            if immediate immutable implicit import include including increment index indexes \
            inherit inherits inline input insensitive insert instead invoker isolation key \
            label language large last leakproof level listen load local location lock locked \
            logged mapping match matched materialized maxvalue merge method minvalue mode \
            move name names new next nfc nfd nfkc nfkd no normalized nothing notify nowait \
            nulls object of off oids old operator option options ordinality others \
            overriding owned owner parallel parameter parser partial partition passing \
            password plans policy preceding prepare prepared preserve prior privileges \
            procedural procedure procedures program publication quote range read reassign \
            recheck recursive ref referencing refresh reindex relative release rename \
            repeatable replace replica reset restart restrict return returns revoke role \
            rollback rollup routine routines rows rule savepoint schema schemas scroll \
            search security sequence sequences serializable server session set sets share \
            show simple skip snapshot sql stable standalone start statement statistics stdin \
            stdout storage stored strict strip subscription support sysid system tables \
            tablespace temp template temporary text ties transaction transform trigger \
            truncate trusted type types uescape unbounded uncommitted unencrypted unknown \
            unlisten unlogged until update vacuum valid validate validator value version \
            view views volatile whitespace work wrapper write xml yes zone",
    },
];

fn rows() -> Rows {
    let mut all: Vec<(&str, &Group)> = Vec::new();
    for group in &GROUPS {
        all.extend(group.words.split_whitespace().map(|word| (word, group)));
    }
    all.sort_unstable_by_key(|(word, _)| *word);
    let row = |(word, group): (&str, &Group)| {
        let bare = if group.bare { "can be bare label" } else { "requires AS" };
        vec![
            Datum::text(word),
            Datum::text(group.code),
            Datum::Bool(group.bare),
            Datum::text(group.kind),
            Datum::text(bare),
        ]
    };
    all.into_iter().map(row).collect()
}

/// Adds the function of this file.
pub(super) fn fill(t: &mut Table) {
    t.rows("pg_get_keywords() record -- the keywords of SQL, and what they may name", |_, _| {
        Ok(rows())
    })
    .columns(&[
        ("word", "text"),
        ("catcode", "\"char\""),
        ("barelabel", "bool"),
        ("catdesc", "text"),
        ("baredesc", "text"),
    ]);
}
