//! Look-ups of keys, in all of their ranges at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use braid_kv::{Conflict, GetMany, GotMany, KvError, KvResult, ReadAt, Tally};
use braid_lsm::CommitTs;
use braid_range::{Answer, Ask, NodeId, Request};
use bytes::Bytes;

use crate::router::{ASK_PATIENCE, Router, Sent, unexpected};
use crate::routes::Route;

/// The newest state is read at a time that is not in doubt: so often a later one is tried.
const LATEST_TRIES: usize = 20;

impl Router {
    /// Calls `read` with a time: with that of the request, or with one that shows the newest state.
    pub(crate) fn reading<T>(
        &self,
        at: ReadAt,
        read: impl Fn(CommitTs) -> KvResult<T>,
    ) -> KvResult<T> {
        let ReadAt::Time(at) = at else {
            let mut newest = CommitTs::ZERO;
            for _ in 0..LATEST_TRIES {
                let at = {
                    let mut txns = self.txns.lock();
                    let at = self.now().max(newest);
                    let home = self.options.home.filter(|_| at > newest);
                    txns.read_from(at, home, self.is_sure(at));
                    at
                };
                let answer = read(at);
                self.txns.lock().read_no_more(at);
                match answer {
                    Err(KvError::Retry {
                        conflict: Conflict::Uncertain(ts) | Conflict::Collected(ts),
                    }) => newest = ts,
                    answer => return answer,
                }
            }
            let conflict = Conflict::Uncertain(newest);
            return Err(KvError::Retry { conflict });
        };
        read(at)
    }

    pub(crate) fn get_keys(&self, request: &GetMany) -> KvResult<GotMany> {
        self.reading(request.at, |at| self.get_at(&request.keys, at))
    }

    fn get_at(&self, keys: &[Bytes], at: CommitTs) -> KvResult<GotMany> {
        let mut out = GotMany { values: vec![None; keys.len()], ..GotMany::default() };
        let bound = self.options.max_clock_offset_micros;
        let mut left: Vec<usize> = (0..keys.len()).collect();
        while !left.is_empty() {
            let groups = self.by_range(keys, std::mem::take(&mut left))?;
            let ask = |(route, here): &'_ (Route, Vec<usize>)| {
                let (range, asked): (_, Vec<Bytes>) =
                    (route.range, here.iter().map(|n| keys[*n].clone()).collect());
                move |node| {
                    let when = self.txns.lock().when(at, (node, range), bound);
                    Ask::Get { keys: asked.clone(), when }
                }
            };
            let asks = groups.iter().map(|group| (&group.0, ask(group))).collect();
            for ((_, here), sent) in groups.iter().zip(self.send_reads(at, asks)) {
                match sent? {
                    Sent::Moved => left.extend(here),
                    Sent::Answer(Answer::Got(got)) => {
                        out.work = out.work.plus(got.work);
                        here.iter().zip(got.values).for_each(|(n, value)| out.values[*n] = value);
                    }
                    Sent::Answer(other) => return Err(self.not_read(at, other)),
                }
            }
        }
        Ok(out)
    }

    /// Some of the keys, by the ranges in which they are believed to be.
    fn by_range(&self, keys: &[Bytes], some: Vec<usize>) -> KvResult<Vec<(Route, Vec<usize>)>> {
        let mut groups: BTreeMap<Bytes, (Route, Vec<usize>)> = BTreeMap::new();
        for n in some {
            let key = &keys[n];
            let known = groups.range_mut::<Bytes, _>(..=key).next_back();
            match known.filter(|(_, (route, _))| route.span.contains(key)) {
                Some((_, (_, here))) => here.push(n),
                None => {
                    let route = self.route(key)?;
                    groups.insert(route.span.start.clone(), (route, vec![n]));
                }
            }
        }
        Ok(groups.into_values().collect())
    }

    /// Asks ranges for something as of a time: all at once, or one by one if each of them may have
    /// a replica nearby that knows.
    pub(crate) fn send_reads<'a, F: Fn(NodeId) -> Ask + 'a>(
        &'a self,
        at: CommitTs,
        asks: Vec<(&'a Route, F)>,
    ) -> Box<dyn Iterator<Item = KvResult<Sent>> + 'a> {
        let is_past = self.txns.lock().is_past(at);
        match is_past {
            true => {
                let one = move |(route, ask): (_, F)| self.send_read(route, at, &ask);
                Box::new(asks.into_iter().map(one))
            }
            false => Box::new(self.send_each(asks)),
        }
    }

    /// Asks a range for something as of a time. What was at a time that somebody has chosen, a
    /// replica nearby may know: it is asked first, and once.
    fn send_read(
        &self,
        route: &Route,
        at: CommitTs,
        ask: &dyn Fn(NodeId) -> Ask,
    ) -> KvResult<Sent> {
        let is_past = self.txns.lock().is_past(at);
        if let Some(answer) = is_past.then(|| self.ask_near(route, ask)).flatten() {
            return Ok(Sent::Answer(answer));
        }
        self.send_stoppable(route, ask)
    }

    /// Asks a range for sizes, which are about right on any replica.
    pub(crate) fn send_for_sizes(&self, route: &Route, ask: &Ask) -> KvResult<Sent> {
        let ask = |_| ask.clone();
        match self.ask_near(route, &ask) {
            Some(answer) => Ok(Sent::Answer(answer)),
            None => self.send_stoppable(route, &ask),
        }
    }

    /// What the replica says that is nearest, if it is not the one to be asked anyway, and can say.
    fn ask_near(&self, route: &Route, ask: &dyn Fn(NodeId) -> Ask) -> Option<Answer> {
        let near = self.nearest(route).filter(|near| route.holder != Some(*near))?;
        self.count_range_call(route.range, near);
        let request = Request { range: route.range, ask: ask(near) };
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let answer = self.transport.ask(near, &request, ASK_PATIENCE, stop)?.answer;
        let is_read = matches!(answer, Answer::Got(_) | Answer::Scanned(_));
        let is_size = matches!(answer, Answer::Divided(_) | Answer::Stored(_));
        self.near_reads.fetch_add(u64::from(is_read), Ordering::Relaxed);
        (is_read || is_size).then_some(answer)
    }

    /// The nearest node with a replica; if there is nothing between them, who served it last.
    fn nearest(&self, route: &Route) -> Option<NodeId> {
        if let Some(home) = self.options.home.filter(|home| route.nodes.contains(home)) {
            return Some(home);
        }
        let holder = route.holder.into_iter();
        let others = route.nodes.iter().copied().filter(|node| Some(*node) != route.holder);
        self.transport.nearest(&holder.chain(others).collect::<Vec<NodeId>>())
    }

    /// Why nothing was read as of a time. Who has asked for one of the past hears what can be
    /// asked for; others have not chosen it, and try again.
    pub(crate) fn not_read(&self, at: CommitTs, answer: Answer) -> KvError {
        match answer {
            Answer::Conflict(Conflict::Collected(oldest)) if self.txns.lock().is_past(at) => {
                KvError::TimestampOutOfWindow { asked: at, oldest, newest: self.now() }
            }
            other => unexpected(other),
        }
    }
}
