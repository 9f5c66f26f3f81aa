//! What a node goes by.
//!
//! A picture replaces an older one only, and only once the disk has it. Most statements ask nothing
//! but [`Live::restricts`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::feature::Feature;
use crate::kept::DiskCopy;
use crate::picture::Picture;
use crate::registry::{Kind, setting};
use crate::rule::{Action, DigestFn, Rule, RuleIndex};

/// Bytes of a statement that is kept as a sample.
const SAMPLE_MAX: usize = 1024;

/// A statement that begins.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who sends it.
    pub user: &'a str,
    /// From which `application_name`.
    pub application: &'a str,
    /// As it was sent.
    pub text: &'a str,
    /// Digests of it and of the queries in it, whatever their constants.
    pub loose: &'a [u64],
    /// The same with constants.
    pub exact: &'a [u64],
    /// Microseconds since 2000.
    pub now_micros: i64,
}

/// What is said of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The rule that denies it.
    pub denied: Option<(u32, Rule)>,
    /// Rules that would.
    pub would: Vec<u32>,
}

/// What a rule has met on this node, since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// How often.
    pub count: u64,
    /// The last time, microseconds since 2000.
    pub last_micros: i64,
    /// A statement, cut.
    pub sample: String,
}

/// A picture, and what is looked up in it.
#[derive(Default)]
struct Now {
    picture: Arc<Picture>,
    index: RuleIndex,
    /// For sessions that begin: what they begin with.
    session_defaults: Arc<Vec<(String, String)>>,
    max_rules: usize,
}

/// See the [module's page](self).
pub struct Live {
    now: RwLock<Now>,
    /// Features that are off, as bits.
    off: AtomicU64,
    /// There is something that statements must be asked about.
    restricts: AtomicBool,
    /// Rules look at what was sent, with its constants.
    asks_for_text: AtomicBool,
    analyzes: AtomicBool,
    deletes_old_rows: AtomicBool,
    /// Rules are passed over: the node was started so.
    safe_mode: AtomicBool,
    hits: Mutex<BTreeMap<u32, Hits>>,
    by_feature: AtomicU64,
    by_rule: AtomicU64,
    /// Locked by who takes a picture: nobody else waits for the disk.
    copy: Mutex<Option<DiskCopy>>,
    digest: DigestFn,
    /// Names that are not known here, and that the log has named.
    told: Mutex<BTreeSet<String>>,
}

impl Live {
    /// As the copy says, if there is one; else nothing is set. A copy that is damaged is none: the
    /// log says so.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(copy: Option<DiskCopy>, digest: DigestFn) -> io::Result<Live> {
        let kept = match copy.as_ref().map(DiskCopy::read).transpose() {
            Ok(kept) => kept.flatten(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::error!(%error, "cluster settings begin with their defaults");
                None
            }
            Err(error) => return Err(error),
        };
        let live = Live {
            now: RwLock::default(),
            off: AtomicU64::new(0),
            restricts: AtomicBool::new(false),
            asks_for_text: AtomicBool::new(false),
            analyzes: AtomicBool::new(true),
            deletes_old_rows: AtomicBool::new(true),
            safe_mode: AtomicBool::new(false),
            hits: Mutex::default(),
            by_feature: AtomicU64::new(0),
            by_rule: AtomicU64::new(0),
            copy: Mutex::new(copy),
            digest,
            told: Mutex::default(),
        };
        live.use_picture(&mut live.now.write(), kept.unwrap_or_default());
        Ok(live)
    }

    /// From now on rules deny nothing on this node.
    pub fn enter_safe_mode(&self) {
        self.safe_mode.store(true, Ordering::SeqCst);
        let mut now = self.now.write();
        let picture = Picture::clone(&now.picture);
        self.use_picture(&mut now, picture);
    }

    /// Takes a picture that is newer than what holds; whether it is. Durable before anybody goes by
    /// it.
    ///
    /// # Errors
    /// The disk's; then what held holds on.
    pub fn take(&self, picture: Picture) -> io::Result<bool> {
        let copy = self.copy.lock();
        if picture.version <= self.version() {
            return Ok(false);
        }
        if let Some(copy) = &*copy {
            copy.write(&picture)?;
        }
        self.use_picture(&mut self.now.write(), picture);
        Ok(true)
    }

    fn use_picture(&self, now: &mut Now, picture: Picture) {
        self.tell_unknown(&picture);
        let value = |name: &str| value_in(&picture, name);
        let is_on = |name: &str| value(name) == "true";
        let off = Feature::ALL.iter().filter(|f| !is_on(f.setting()));
        let off = off.fold(0, |bits, feature| bits | feature.bit());
        let holds = is_on("sql.denied_queries.enabled") && !self.safe_mode.load(Ordering::SeqCst);
        let rules = picture.rules.iter().filter(|_| holds).map(|(id, rule)| (*id, rule));
        let index = RuleIndex::new(rules, self.digest);
        self.off.store(off, Ordering::SeqCst);
        self.asks_for_text.store(index.asks_for_text(), Ordering::SeqCst);
        let has_rules = holds && !picture.rules.is_empty();
        self.restricts.store(off != 0 || has_rules, Ordering::SeqCst);
        self.analyzes.store(is_on("autovacuum"), Ordering::SeqCst);
        self.deletes_old_rows.store(is_on("sql.row_deletion.enabled"), Ordering::SeqCst);
        self.hits.lock().retain(|id, _| picture.rules.contains_key(id));
        let defaults =
            picture.values.iter().filter_map(|(name, stored)| match setting(name).ok()?.kind {
                Kind::SessionDefault(of) => Some((of.to_string(), stored.value.clone())),
                _ => None,
            });
        let session_defaults = Arc::new(defaults.collect());
        let max_rules = value("sql.denied_queries.max_rules").parse().unwrap_or(usize::MAX);
        *now = Now { picture: Arc::new(picture), index, session_defaults, max_rules };
    }

    /// Names that only a newer release knows are kept for it, and do nothing here.
    fn tell_unknown(&self, picture: &Picture) {
        let mut told = self.told.lock();
        for name in picture.values.keys() {
            if setting(name).is_err() && told.insert(name.clone()) {
                tracing::warn!(%name, "this release does not know a cluster setting");
            }
        }
    }

    /// All of it.
    pub fn picture(&self) -> Arc<Picture> {
        self.now.read().picture.clone()
    }

    /// The version that holds.
    pub fn version(&self) -> u64 {
        self.now.read().picture.version
    }

    /// The value of a setting: as it was set, or its default.
    pub fn value(&self, name: &str) -> String {
        value_in(&self.now.read().picture, name)
    }

    /// What sessions begin with.
    pub fn session_defaults(&self) -> Arc<Vec<(String, String)>> {
        self.now.read().session_defaults.clone()
    }

    /// How many rules there may be.
    pub fn max_rules(&self) -> usize {
        self.now.read().max_rules
    }

    /// Whether tables that have changed are analyzed.
    pub fn analyzes(&self) -> bool {
        self.analyzes.load(Ordering::Relaxed)
    }

    /// Whether row deletion policies are carried out.
    pub fn deletes_old_rows(&self) -> bool {
        self.deletes_old_rows.load(Ordering::Relaxed)
    }

    /// Whether statements must be asked about at all.
    pub fn restricts(&self) -> bool {
        self.restricts.load(Ordering::Relaxed)
    }

    /// Whether [`Asked::text`] and [`Asked::exact`] matter: somebody denies what has certain
    /// constants.
    pub fn asks_for_text(&self) -> bool {
        self.asks_for_text.load(Ordering::Relaxed)
    }

    /// Whether a class of statements is switched off. Counted, if it is.
    pub fn is_off(&self, feature: Feature) -> bool {
        let off = self.off.load(Ordering::Relaxed) & feature.bit() != 0;
        self.by_feature.fetch_add(u64::from(off), Ordering::Relaxed);
        off
    }

    /// What the rules say of a statement that `runs`, or that is planned only. What is met is
    /// counted; what is not denied, only where it runs.
    pub fn judge(&self, asked: &Asked<'_>, runs: bool) -> Verdict {
        let now = self.now.read();
        let mut verdict = Verdict::default();
        for id in now.index.naming(asked.loose, asked.exact, asked.text) {
            let Some(rule) = now.picture.rules.get(&id) else { continue };
            if rule.is_over(asked.now_micros) || !rule.is_about(asked.user, asked.application) {
                continue;
            }
            match rule.action {
                Action::DryRun => verdict.would.push(id),
                Action::Reject => verdict.denied = Some((id, rule.clone())),
            }
            if verdict.denied.is_some() {
                break;
            }
        }
        let denied = verdict.denied.as_ref().map(|(id, _)| *id);
        self.by_rule.fetch_add(u64::from(denied.is_some()), Ordering::Relaxed);
        let dry = verdict.would.iter().copied().filter(|_| runs);
        denied.into_iter().chain(dry).for_each(|id| self.hit(id, asked));
        verdict
    }

    fn hit(&self, id: u32, asked: &Asked<'_>) {
        let mut hits = self.hits.lock();
        let one = hits.entry(id).or_default();
        if one.count == 0 {
            let end = asked.text.floor_char_boundary(SAMPLE_MAX);
            one.sample = asked.text[..end].to_string();
            let (user, application) = (asked.user, asked.application);
            tracing::warn!(rule = id, user, application, "a rule of DENY QUERY is met");
        }
        one.count += 1;
        one.last_micros = asked.now_micros;
    }

    /// What the rules have met on this node.
    pub fn hits(&self) -> BTreeMap<u32, Hits> {
        self.hits.lock().clone()
    }

    /// Statements that were refused on this node, since it was started: by features that are off,
    /// and by rules.
    pub fn refused(&self) -> (u64, u64) {
        (self.by_feature.load(Ordering::Relaxed), self.by_rule.load(Ordering::Relaxed))
    }
}

/// What a setting is in a picture.
fn value_in(picture: &Picture, name: &str) -> String {
    let default = || setting(name).map_or("", |setting| setting.default).to_string();
    picture.values.get(name).map_or_else(default, |stored| stored.value.clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
    use braid_env::random::Random;

    use super::*;
    use crate::picture::Stored;
    use crate::rule::Match;

    fn picture(version: u64, values: &[(&str, &str)]) -> Picture {
        let stored = |value: &str| Stored {
            value: value.into(),
            version,
            before: None,
            at_micros: 0,
            by: "root".into(),
        };
        let values = values.iter().map(|(name, value)| (name.to_string(), stored(value)));
        Picture { version, values: values.collect(), rules: BTreeMap::new() }
    }

    /// For tests a statement is its digest.
    fn digest(text: &str, _: Match) -> u64 {
        text.parse().unwrap_or(0)
    }

    fn rule(by: Match, text: &str) -> Rule {
        Rule {
            by,
            text: text.into(),
            user: None,
            application: None,
            until_micros: None,
            action: Action::Reject,
            reason: None,
            at_micros: 0,
            made_by: "root".into(),
        }
    }

    fn asked<'a>(text: &'a str, loose: &'a [u64], exact: &'a [u64]) -> Asked<'a> {
        Asked { user: "u", application: "a", text, loose, exact, now_micros: 100 }
    }

    fn denied(live: &Live, asked: &Asked<'_>) -> Option<u32> {
        live.judge(asked, true).denied.map(|(id, _)| id)
    }

    #[test]
    fn an_older_picture_is_not_taken_nor_one_that_the_disk_does_not_take() {
        let disk = MemFs::new();
        let fs: Arc<dyn FileSystem> = Arc::new(disk.clone());
        fs.create_dir_all(Path::new("/n")).expect("a folder");
        let open = |fs: Arc<dyn FileSystem>| Live::open(Some(DiskCopy::new(fs, "/n")), digest);
        let live = open(fs.clone()).expect("nothing is there");
        assert!(!live.restricts() && live.value("feature.copy.enabled") == "true");
        let two = picture(2, &[("feature.copy.enabled", "false"), ("of.tomorrow", "x")]);
        assert!(live.take(two.clone()).expect("a disk"));
        assert!(!live.take(picture(1, &[])).expect("a disk"), "it is older");
        assert!(live.is_off(Feature::Copy) && !live.is_off(Feature::Do));
        let faults = FaultFs::new(fs.clone(), 1);
        let other = open(Arc::new(faults.clone())).expect("what was written is there");
        assert_eq!((other.version(), other.is_off(Feature::Copy)), (2, true));
        faults.add_rule("sync(settings) -> EIO").expect("a rule");
        assert!(other.take(picture(3, &[])).is_err());
        assert_eq!(other.version(), 2, "nobody goes by what the disk does not have");
        let crashed = disk.crash_clone(&mut Random::seeded(7), CrashPolicy::LoseAll);
        let again = open(Arc::new(crashed)).expect("what was used is durable");
        assert_eq!(*again.picture(), two, "also what is not known here");
    }

    #[test]
    fn a_damaged_copy_is_none() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/n")).expect("a folder");
        let live =
            Live::open(Some(DiskCopy::new(fs.clone(), "/n")), digest).expect("nothing is there");
        live.take(picture(2, &[("feature.copy.enabled", "false")])).expect("a disk");
        let path = Path::new("/n/settings");
        let length = fs.open(path).and_then(|file| file.len()).expect("it is there");
        for at in 0..length {
            let file = fs.open_write(path).expect("it is there");
            let mut byte = [0];
            file.read_at(&mut byte, at).expect("it is there");
            file.write_at(&[byte[0] ^ 1], at).expect("a disk");
            let live =
                Live::open(Some(DiskCopy::new(fs.clone(), "/n")), digest).expect("told in the log");
            assert_eq!(live.version(), 0, "byte {at}");
            file.write_at(&byte, at).expect("a disk");
        }
    }

    #[test]
    fn rules_ask_who_and_when_and_the_first_one_counts() {
        let live = Live::open(None, digest).expect("no disk");
        let mut all = picture(1, &[]);
        let of = rule;
        all.rules.insert(1, Rule { user: Some("v".into()), ..of(Match::Fingerprint, "5") });
        all.rules.insert(2, Rule { action: Action::DryRun, ..of(Match::Fingerprint, "5") });
        all.rules.insert(3, Rule { until_micros: Some(100), ..of(Match::Fingerprint, "5") });
        all.rules.insert(4, Rule { application: Some("a".into()), ..of(Match::Fingerprint, "5") });
        all.rules.insert(5, of(Match::Exact, "6"));
        all.rules.insert(6, of(Match::Regex, "drop.*table"));
        live.take(all.clone()).expect("no disk");
        assert!(live.restricts() && live.asks_for_text());
        assert_eq!(denied(&live, &asked("x", &[5, 9], &[])), Some(4));
        assert_eq!(denied(&live, &asked("x", &[6], &[5])), None, "the other kind of digest");
        assert_eq!(denied(&live, &asked("x", &[], &[1, 6])), Some(5));
        assert_eq!(denied(&live, &asked("DROP  TABLE t", &[], &[])), Some(6));
        let planned = live.judge(&asked("y", &[5], &[]), false);
        assert_eq!((planned.denied.map(|(id, _)| id), planned.would), (Some(4), vec![2]));
        let hits = live.hits();
        let count = |id: u32| hits.get(&id).map_or(0, |hits| hits.count);
        assert_eq!([1, 2, 3, 4, 5, 6].map(count), [0, 1, 0, 2, 1, 1]);
        assert_eq!((hits[&4].sample.as_str(), hits[&4].last_micros), ("x", 100));
        assert_eq!(live.refused(), (0, 4));
        live.enter_safe_mode();
        assert_eq!(denied(&live, &asked("x", &[5], &[6])), None);
        assert!(!live.restricts());
    }

    #[test]
    fn one_setting_ends_all_rules() {
        let live = Live::open(None, digest).expect("no disk");
        let mut all = picture(1, &[("sql.denied_queries.enabled", "false")]);
        all.rules.insert(1, rule(Match::Regex, "."));
        live.take(all).expect("no disk");
        assert!(!live.restricts());
        assert_eq!(denied(&live, &asked("x", &[], &[])), None);
    }
}
