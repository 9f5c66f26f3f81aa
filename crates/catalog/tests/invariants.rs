//! Each invariant of the catalog is broken once, and the check says so.

use braid_catalog::{
    Catalog, Column, Database, ForeignKey, Index, IndexColumn, IndexConstraint, Interleave,
    InterleaveForm, MAX_DEPTH, RefAction, Schema, Table, Upkeep,
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
            on_update: RefAction::NoAction,
            match_full: false,
            deferral: None,
        });
        c.put_table(t);
    });
    assert!(foreign.contains("foreign key fk is broken"), "{foreign}");
    let no_schema = broken(|c| c.remove(2));
    assert!(no_schema.contains("missing schema"), "{no_schema}");
}
