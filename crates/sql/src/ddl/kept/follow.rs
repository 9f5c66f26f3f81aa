//! Names in kept texts follow what they mean when that is called otherwise, as PostgreSQL's do,
//! which keeps oids. Names mean what they meant before the change.
//!
//! ```text
//!   CREATE VIEW v AS SELECT 'low'::level FROM a.t
//!   ALTER TYPE level RENAME TO grade             SELECT 'low'::public.grade FROM a.t
//!   ALTER SCHEMA a RENAME TO b                   SELECT 'low'::public.grade FROM b.t
//! ```

use braid_catalog::{Function, UserType};
use braid_parser::Name;
use braid_types::SqlResult;

use super::names::{Finder, Meant, Names};
use super::texts::{Kept, Rewrite, rewrite};
use crate::ddl::{Change, alter};

/// Changes names in a text: whether there were some.
fn rename(kept: &mut Kept<'_>, new_name: &mut dyn FnMut(Meant, &[String]) -> Option<Name>) -> bool {
    let mut names = Names { of: new_name, changed: false };
    kept.tree.walk_mut(&mut names);
    names.changed
}

/// Has what names a type name it by its new name and schema.
///
/// # Errors
/// Of locking what the names are kept with.
pub(in crate::ddl) fn follow_type(c: &mut Change, old: &UserType, new: &UserType) -> SqlResult<()> {
    let (catalog, database) = (c.catalog.clone(), c.ctx.database);
    let schema = c.ctx.schema_name(new.schema);
    let multirange = |ty: &UserType| ty.multirange().map(|of| of.multirange.clone());
    let names = [Some(old.name.clone()), multirange(old)];
    let may = |text: &str| names.iter().flatten().any(|name| text.contains(name.as_str()));
    let change = |kept: &mut Kept<'_>| {
        let finder = Finder { catalog: &catalog, database, path: kept.path };
        let is_it = |parts: &[String]| finder.user_type(parts).is_some_and(|ty| ty.id == old.id);
        Ok(rename(kept, &mut |meant, parts| {
            let last = parts.last()?;
            let names_it = match meant {
                Meant::Type => is_it(parts),
                // Constructors of ranges are called as their type is.
                Meant::Function => {
                    old.multirange().is_some() && finder.functions(parts).is_empty() && is_it(parts)
                }
                Meant::Relation | Meant::Collation => false,
            };
            let now = match () {
                () if *last == old.name => new.name.clone(),
                () if multirange(old).as_ref() == Some(last) => multirange(new)?,
                () => format!("_{}", new.name),
            };
            names_it.then(|| vec![schema.clone(), now])
        }))
    };
    rewrite(c, &Rewrite { may: &may, change: &change })
}

/// Has what calls a function call it by its new name and schema. No other function may be meant by
/// the same name.
///
/// # Errors
/// Of locking what the names are kept with.
pub(in crate::ddl) fn follow_function(
    c: &mut Change,
    old: &Function,
    new: &Function,
) -> SqlResult<()> {
    let (catalog, database) = (c.catalog.clone(), c.ctx.database);
    let schema = c.ctx.schema_name(new.schema);
    let may = |text: &str| text.contains(&old.name);
    let change = |kept: &mut Kept<'_>| {
        let finder = Finder { catalog: &catalog, database, path: kept.path };
        Ok(rename(kept, &mut |meant, parts| {
            let is_it = meant == Meant::Function
                && finder.functions(parts).iter().any(|found| found.id == old.id);
            is_it.then(|| vec![schema.clone(), new.name.clone()])
        }))
    };
    rewrite(c, &Rewrite { may: &may, change: &change })
}

/// Has what names objects of a schema name them by the schema's new name.
///
/// # Errors
/// Of locking what the names are kept with.
pub(in crate::ddl) fn follow_schema(c: &mut Change, old: &str, new: &str) -> SqlResult<()> {
    let may = |text: &str| text.contains(old);
    let change = |kept: &mut Kept<'_>| {
        Ok(rename(kept, &mut |_, parts| {
            let [schema, name] = parts else { return None };
            (schema == old).then(|| vec![new.to_string(), name.clone()])
        }))
    };
    rewrite(c, &Rewrite { may: &may, change: &change })?;
    let mut moved = Vec::new();
    for (view, definition) in c.catalog.definitions() {
        let relation = c.catalog.qualified_name(view);
        if relation.is_some() && definition.search_path.iter().any(|schema| schema == old) {
            moved.push((view, definition.clone()));
        }
    }
    for (view, mut definition) in moved {
        for schema in definition.search_path.iter_mut().filter(|schema| *schema == old) {
            *schema = new.to_string();
        }
        c.ctx.lock_for_change(view)?;
        alter::put_definition(c, view, definition);
    }
    Ok(())
}
