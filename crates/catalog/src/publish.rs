//! When others learn of a schema change: the version of the catalog, and who waits for whom.
//!
//! ```text
//!   a statement  stages     its descriptors into its transaction; if all sessions see
//!                           them, it locks out all other such changes
//!   the commit   publishes  the catalog's next version, which it locks for that moment
//! ```
//! Changes of what all sessions see exclude each other from the first statement to the commit.
//! Before that, all nodes that go by what there was until now are asked to stop
//! ([`crate::leases`]).
//! What only one session knows, its temporary tables, keeps nobody waiting and waits for nobody:
//! two transactions may be open that have both made some. The one that commits later then finds
//! another version than the one it began with. It reads what is there now, with its own changes
//! over it, and makes sure that all of it still fits together ([`Catalog::check`]).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use braid_keys::system;
use braid_kv::{LockMode, ReadMode, Txn};
use braid_types::{RetryReason, SqlResult};

use crate::access::{EVERY_DATABASE, Notes};
use crate::conflict::Lost;
use crate::descriptor::{Schema, Table};
use crate::error::kv_error;
use crate::leases::recall_leases;
use crate::snapshot::Catalog;
use crate::store::{load_as, version_as, write_descriptors};

/// Who can see what a change has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// The session that made it.
    Owner,
    /// Everybody.
    All,
}

/// Writes what differs between two catalogs into a transaction, and says who sees it; `own` tells
/// the schemas that only this session knows. Others learn of it when it is [published](publish).
///
/// # Errors
/// XX000 naming the broken invariants if `new` does not pass [`Catalog::check`]; 40001 if somebody
/// else has changed what all see.
pub fn stage(
    txn: &Arc<Txn>,
    old: &Catalog,
    new: &mut Catalog,
    own: impl Fn(&Schema) -> bool,
) -> SqlResult<SeenBy> {
    new.prune_notes();
    let seen_by = if old.differs_only_in(new, own) { SeenBy::Owner } else { SeenBy::All };
    if seen_by == SeenBy::All {
        recall_leases(txn)?;
        let version = old.version.to_be_bytes().to_vec();
        txn.put(system::shared_changes(), version).map_err(kv_error)?;
    }
    write_descriptors(txn, old, new)?;
    Ok(seen_by)
}

/// As [`stage`], of a change that all see, whatever others have changed since `old`: the caller
/// has locked what it changes, and that it goes together is found when it is [published](publish),
/// at once.
///
/// # Errors
/// As [`stage`]; 40001 if somebody else has changed the same objects.
pub fn stage_over(txn: &Arc<Txn>, old: &Catalog, new: &mut Catalog) -> SqlResult<()> {
    new.prune_notes();
    recall_leases(txn)?;
    let version = old.version.to_be_bytes().to_vec();
    txn.put_over(system::shared_changes(), version).map_err(kv_error)?;
    write_descriptors(txn, old, new)
}

/// Raises the version of the catalog; returns the new one. `known` is the one that the changes of
/// the transaction were made over. From here to the commit nobody else can publish.
///
/// # Errors
/// 40001 if what others have published meanwhile does not go together with it.
pub fn publish(txn: &Arc<Txn>, known: u64) -> SqlResult<u64> {
    recall_leases(txn)?;
    let key = system::catalog_version();
    txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
    let now = version_as(txn, ReadMode::Latest)?.unwrap_or(0);
    if now != known {
        load_as(txn, ReadMode::Latest)?.check_merged()?;
    }
    txn.put_over(key, (now + 1).to_be_bytes().to_vec()).map_err(kv_error)?;
    Ok(now + 1)
}

/// [Stages](stage) a change that all see and [publishes](publish) it, for who commits at once.
pub fn write_changes(txn: &Arc<Txn>, old: &Catalog, new: &mut Catalog) -> SqlResult<()> {
    stage(txn, old, new, |_| false)?;
    new.version = publish(txn, old.version)?;
    Ok(())
}

/// The catalog as of a transaction's read timestamp with its own changes over it: `with` if nobody
/// has published one since that was read.
///
/// # Errors
/// 40001 if its own changes do not go together with those of others.
pub fn with_own_changes(txn: &Arc<Txn>, with: &Arc<Catalog>) -> SqlResult<Arc<Catalog>> {
    if version_as(txn, ReadMode::Unrecorded)?.unwrap_or(0) == with.version {
        return Ok(with.clone());
    }
    let merged = load_as(txn, ReadMode::Unrecorded)?;
    merged.check_merged()?;
    Ok(Arc::new(merged))
}

impl Catalog {
    /// 40001 if changes of two transactions do not go together.
    fn check_merged(&self) -> SqlResult<()> {
        let mut broken = self.check();
        for notes in self.notes.values() {
            if notes.owner.is_some_and(|owner| self.role_name(owner, "").is_none()) {
                broken.push(format!("the owner of object {} is missing", notes.id));
            }
        }
        match broken.first() {
            None => Ok(()),
            Some(first) => Err(Lost::Changed
                .error("could not serialize access due to a concurrent schema change")
                .with_retry_reason(RetryReason::SchemaChange)
                .with_detail(format!("Together they would leave this: {first}."))),
        }
    }

    /// Whether two catalogs differ only in what lies in some schemas, in these themselves, and in
    /// notes about all that; and nothing there is told to anything outside.
    fn differs_only_in(&self, new: &Catalog, inside: impl Fn(&Schema) -> bool) -> bool {
        let schemas = self.schemas.values().chain(new.schemas.values());
        let schemas: HashSet<u32> = schemas.filter(|s| inside(s)).map(|s| s.id).collect();
        if schemas.is_empty() {
            return false;
        }
        let inside = |id: &u32| schemas.contains(id);
        let changed_inside = |id: &u32| [self, new].iter().all(|c| c.lies_in(*id, &inside));
        let views_inside = |id: &u32| {
            let view = new.views.get(id);
            let mut seen = view.into_iter().flat_map(|v| &v.definition.depends_on);
            seen.all(|id| new.lies_in(*id, &inside))
        };
        differing(&self.databases, &new.databases).next().is_none()
            && differing(&self.roles, &new.roles).next().is_none()
            && differing(&self.default_acls, &new.default_acls).next().is_none()
            && differing(&self.schemas, &new.schemas).all(|id| inside(&id))
            && differing(&self.tables, &new.tables).all(|id| changed_inside(&id))
            && differing(&self.sequences, &new.sequences).all(|id| changed_inside(&id))
            && differing(&self.types, &new.types).all(|id| changed_inside(&id))
            && differing(&self.functions, &new.functions).all(|id| changed_inside(&id))
            && differing(&self.collations, &new.collations).all(|id| changed_inside(&id))
            && differing(&self.views, &new.views).all(|id| changed_inside(&id) && views_inside(&id))
            && differing::<Notes>(&self.notes, &new.notes)
                .all(|id| inside(&id) || changed_inside(&id))
    }

    /// Whether an object, if it is there, lies in one of some schemas, and so does what it needs.
    fn lies_in(&self, id: u32, inside: &impl Fn(&u32) -> bool) -> bool {
        if let Some((table, _)) = self.index(id).filter(|(t, _)| t.id != id) {
            return inside(&table.schema);
        }
        let parents = |t: &Table| {
            let parent = t.interleave.as_ref().map(|i| i.parent);
            let referred = t.kept_foreign_keys().map(|fk| fk.parent);
            let mut all = parent.into_iter().chain(referred);
            all.all(|id| self.tables.get(&id).is_some_and(|p| inside(&p.schema)))
        };
        self.tables.get(&id).is_none_or(|t| inside(&t.schema) && parents(t))
            && self.views.get(&id).is_none_or(|v| inside(&v.schema))
            && self.sequences.get(&id).is_none_or(|s| inside(&s.schema))
            && self.types.get(&id).is_none_or(|t| inside(&t.schema))
            && self.functions.get(&id).is_none_or(|f| inside(&f.schema))
            && self.collations.get(&id).is_none_or(|c| inside(&c.schema))
            && id != EVERY_DATABASE
            && !self.databases.contains_key(&id)
            && !self.roles.contains_key(&id)
            && self.schemas.get(&id).is_none_or(|s| inside(&s.id))
    }
}

/// Ids under which two maps differ.
fn differing<'a, T: PartialEq>(
    old: &'a BTreeMap<u32, Arc<T>>,
    new: &'a BTreeMap<u32, Arc<T>>,
) -> impl Iterator<Item = u32> + 'a {
    let gone = old.keys().filter(|id| !new.contains_key(id)).copied();
    let put = new.iter().filter(|(id, value)| {
        !old.get(id).is_some_and(|o| Arc::ptr_eq(o, value) || **o == ***value)
    });
    gone.chain(put.map(|(id, _)| *id))
}
