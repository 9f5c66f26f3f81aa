//! Each invariant of the catalog is broken once, and the check says so.

use std::sync::Arc;

use braid_catalog::{
    Catalog, Column, Database, ForeignKey, Index, IndexColumn, IndexConstraint, Interleave,
    InterleaveForm, KeyPart, Limit, MAX_DEPTH, OfPartition, Partition, PartitionBound,
    PartitionIndex, PartitionKey, Partitioning, RefAction, Schema, Strategy, Table, Upkeep,
};
use braid_types::SqlType;

fn column(id: u32, name: &str, ty: SqlType) -> Column {
    Column { nullable: false, ..Column::new(id, name, ty) }
}

fn index(id: u32, name: &str, columns: &[u32]) -> Index {
    Index {
        id,
        generation: 1,
        name: name.into(),
        unique: true,
        deferral: None,
        nulls_not_distinct: false,
        columns: columns.iter().map(|c| IndexColumn::asc(*c)).collect(),
        include: Vec::new(),
        interleave_in: None,
        predicate: None,
        constraint: Some(IndexConstraint::Primary),
        of_partition: None,
        unread: None,
        declared: None,
    }
}

fn table(id: u32, name: &str, key: &[u32]) -> Table {
    Table {
        id,
        schema: 2,
        name: name.into(),
        generation: 1,
        columns: (1..=3).map(|c| column(c, &format!("c{c}"), SqlType::Int4)).collect(),
        next_column: 4,
        primary: index(id + 1000, &format!("{name}_pkey"), key),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        interleave: None,
        comment: None,
        step: 0,
        building: None,
        upkeep: Upkeep::default(),
    }
}

fn inside(mut t: Table, parent: u32, columns: &[u32]) -> Table {
    t.interleave = Some(Interleave {
        parent,
        form: InterleaveForm::Enforced,
        on_delete: RefAction::Cascade,
        columns: columns.to_vec(),
    });
    t
}

fn partition(id: u32, parent: u32) -> Partition {
    let limit = |n: u32| vec![Limit::Value(n.to_string())];
    Partition {
        id,
        schema: 2,
        name: format!("p{id}"),
        parent,
        bound: PartitionBound::Range { from: limit(id), to: limit(id + 1) },
        key: None,
        defaults: vec![(2, Some("7".into()))],
        checks: Vec::new(),
        indexes: vec![PartitionIndex { id: id + 1000, name: format!("p{id}_pkey"), of: 1012 }],
    }
}

/// divided(c1), with the partitions p20, p21, ..
fn divided(partitions: std::ops::Range<u32>) -> Table {
    let key = PartitionKey { strategy: Strategy::Range, parts: vec![KeyPart::Column(1)] };
    let partitions = partitions.map(|id| partition(id, 12)).collect();
    let mut t = table(12, "divided", &[1]);
    t.upkeep.partitioning = Some(Arc::new(Partitioning { key, partitions }));
    t
}

/// parent(c1), child(c1, c2) inside of it.
fn good() -> Catalog {
    let mut c = Catalog::default();
    c.put_database(Database { id: 1, name: "d".into() });
    c.put_schema(Schema { id: 2, database: 1, name: "public".into(), on_commit: Vec::new() });
    c.put_table(table(10, "parent", &[1]));
    c.put_table(inside(table(11, "child", &[1, 2]), 10, &[1]));
    c
}

fn broken(change: impl FnOnce(&mut Catalog)) -> String {
    let mut c = good();
    change(&mut c);
    c.check().join("; ")
}

#[test]
fn a_good_catalog_has_no_complaints() {
    let c = good();
    assert_eq!(c.check(), Vec::<String>::new());
    let child = c.table(11).unwrap();
    assert_eq!(c.depth(child), 2);
    assert_eq!(c.subtree(c.table(10).unwrap()).len(), 2);
    assert!(c.is_self_or_ancestor(10, child) && !c.is_self_or_ancestor(11, c.table(10).unwrap()));
}

#[test]
fn partitions_are_seen_as_tables_that_share_what_they_are_parts_of() {
    let mut c = good();
    c.put_table(divided(20..520));
    assert_eq!(c.check(), Vec::<String>::new());
    let (table, seen) = (c.table(12).unwrap(), c.partition(77).unwrap());
    let shared = |t: &Table| t.upkeep.partitioning.clone().unwrap();
    assert!(Arc::ptr_eq(&shared(table), &shared(seen)), "each would hold all of them");
    let names = (seen.name.as_str(), seen.primary.name.as_str(), seen.id, seen.shown_id());
    assert_eq!(names, ("p77", "p77_pkey", 12, 77));
    assert_eq!(seen.column(2).unwrap().default.as_deref(), Some("7"));
    let (shown, index) = c.partition_index(1077).unwrap();
    assert_eq!((shown.id, index.name.as_str(), index.id), (77, "p77_pkey", 1077));
    assert!(c.partition_index(1012).is_none() && c.partition(12).is_none());
    assert_eq!((c.shown_partitions().count(), c.partitions().count()), (500, 500));
    assert!(c.has_partition(519) && !c.has_partition(520));
}

#[test]
fn every_broken_invariant_of_partitions_is_named() {
    let broken_in = |change: &dyn Fn(&mut Table)| {
        let mut t = divided(20..22);
        change(&mut t);
        broken(|c| c.put_table(t))
    };
    let parts = |t: &mut Table, change: &dyn Fn(&mut Partitioning)| {
        change(t.partitioning_mut().unwrap());
    };
    assert_eq!(broken_in(&|_| ()), "");
    let stranger = broken_in(&|t| parts(t, &|d| d.partitions[1].parent = 99));
    assert_eq!(stranger, "partition p21 is in no partitioned table");
    let whole = broken_in(&|t| parts(t, &|d| d.partitions[1].parent = 20));
    assert_eq!(whole, "partition p21 is in no partitioned table");
    let twice = broken_in(&|t| parts(t, &|d| d.partitions[1].id = 20));
    assert!(twice.contains("partition p21 is in table divided twice"), "{twice}");
    let lost = broken_in(&|t| parts(t, &|d| d.partitions[0].indexes[0].of = 5));
    assert_eq!(lost, "partition p20: index p20_pkey is of a missing index");
    let column = broken_in(&|t| parts(t, &|d| d.key.parts = vec![KeyPart::Column(9)]));
    assert_eq!(column, "table divided: partition key names a missing column");
    let alone = broken_in(&|t| {
        let of_partition = Some(OfPartition { partition: 9, predicate: None });
        let second = index(1500, "second", &[2]);
        t.indexes.push(Index { of_partition, constraint: None, ..second });
    });
    assert_eq!(alone, "table divided: index second is of a missing partition");
    let name = broken_in(&|t| parts(t, &|d| d.partitions[0].name = "child".into()));
    assert!(name.contains("used twice"), "{name}");
}

#[test]
fn every_broken_invariant_is_named() {
    let missing_parent = broken(|c| c.put_table(inside(table(12, "x", &[1, 2]), 99, &[1])));
    assert!(missing_parent.contains("interleave parent 99 is missing"), "{missing_parent}");
    let wrong_key = broken(|c| c.put_table(inside(table(12, "x", &[2, 1]), 10, &[1])));
    assert!(wrong_key.contains("does not start with the key of parent"), "{wrong_key}");
    let wrong_type = broken(|c| {
        let mut t = inside(table(12, "x", &[1, 2]), 10, &[1]);
        t.columns[0].ty = SqlType::Text;
        c.put_table(t);
    });
    assert!(wrong_type.contains("does not start with the key of parent"), "{wrong_type}");
    let circle = broken(|c| {
        c.put_table(inside(table(10, "parent", &[1]), 12, &[1]));
        c.put_table(inside(table(12, "x", &[1]), 10, &[1]));
    });
    assert!(circle.contains("circle or too deep"), "{circle} (limit {MAX_DEPTH})");
    let twice = broken(|c| c.put_table(table(12, "child", &[1])));
    assert!(twice.contains("used twice"), "{twice}");
    let nullable = broken(|c| {
        let mut t = table(12, "x", &[1]);
        t.columns[0].nullable = true;
        c.put_table(t);
    });
    assert!(nullable.contains("nullable"), "{nullable}");
    let stranger = broken(|c| {
        let mut t = table(12, "x", &[1]);
        let mut i = index(500, "x_i", &[1, 2]);
        i.interleave_in = Some(10);
        t.indexes.push(i);
        c.put_table(t);
    });
    assert!(stranger.contains("lives in a stranger"), "{stranger}");
    let foreign = broken(|c| {
        let mut t = table(12, "x", &[1]);
        t.foreign_keys.push(ForeignKey {
            name: "fk".into(),
            id: 600,
            columns: vec![1, 2],
            parent: 10,
            parent_columns: vec![1],
            on_delete: RefAction::NoAction,
            set_on_delete: Vec::new(),
            on_update: RefAction::NoAction,
            match_full: false,
            deferral: None,
            not_valid: false,
        });
        c.put_table(t);
    });
    assert!(foreign.contains("foreign key fk is broken"), "{foreign}");
    let no_schema = broken(|c| c.remove(2));
    assert!(no_schema.contains("missing schema"), "{no_schema}");
}
