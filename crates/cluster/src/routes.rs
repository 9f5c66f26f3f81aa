//! What is known of ranges: which keys each has, and which node serves it.
//!
//! ```text
//!   known   r1 [a ----------------- z) generation 1
//!   told                r2 [m ---- z) generation 2
//!   then    r1 [a ---- m) | r2 [m - z)          the rest of r1 is a guess
//! ```
//!
//! All of it may be wrong: whoever is asked for keys that it does not have says what it knows, and
//! of two that say something about a key the one with the higher generation is right.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

use braid_lsm::KeySpan;
use braid_range::{NodeId, RangeDescriptor, RangeId};
use bytes::Bytes;

/// A range, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) range: RangeId,
    pub(crate) span: KeySpan,
    pub(crate) generation: u64,
    pub(crate) nodes: Vec<NodeId>,
    /// Who served it last.
    pub(crate) holder: Option<NodeId>,
}

/// What was new in what somebody has said.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Something was.
    pub(crate) any: bool,
    /// Of which ranges which others have got keys, and what those are.
    pub(crate) came_from: Vec<(RangeId, (RangeId, KeySpan))>,
}

/// See the [module's page](self).
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// By start; disjoint.
    by_start: BTreeMap<Bytes, Route>,
    /// Where parts of each range begin.
    starts: BTreeSet<(RangeId, Bytes)>,
    /// Their nodes, if nothing was learned since somebody wanted to know.
    nodes: Option<BTreeSet<NodeId>>,
}

impl Routes {
    /// The range that has a key.
    pub(crate) fn of(&self, key: &[u8]) -> Option<&Route> {
        let (_, route) = self.by_start.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        route.span.contains(key).then_some(route)
    }

    /// The range that has the keys right in front of `end`.
    pub(crate) fn before(&self, end: &[u8]) -> Option<&Route> {
        let (_, route) = self.by_start.range::<[u8], _>((Unbounded, Excluded(end))).next_back()?;
        (route.span.end.as_ref() >= end).then_some(route)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Route> {
        self.by_start.values()
    }

    /// All nodes with a replica of any. Asked every second, and there may be very many ranges.
    pub(crate) fn nodes(&mut self) -> &BTreeSet<NodeId> {
        let all = || self.by_start.values().flat_map(|route| route.nodes.iter().copied()).collect();
        self.nodes.get_or_insert_with(all)
    }

    /// A range by its number.
    pub(crate) fn by_id(&self, range: RangeId) -> Option<&Route> {
        let (of, start) = self.starts.range((range, Bytes::new())..).next()?;
        self.by_start.get(start).filter(|_| *of == range)
    }

    /// Who serves a range. Asked after each request, and there may be very many ranges.
    pub(crate) fn set_holder(&mut self, range: RangeId, node: Option<NodeId>) {
        let parts = self.starts.range((range, Bytes::new())..).take_while(|(of, _)| *of == range);
        for (_, start) in parts {
            if let Some(route) = self.by_start.get_mut(start).filter(|known| known.holder != node) {
                route.holder = node;
            }
        }
    }

    /// Who serves the ranges of a span, as far as that is known.
    pub(crate) fn holders(&self, span: &KeySpan) -> BTreeSet<NodeId> {
        self.within(span).filter_map(|route| route.holder).collect()
    }

    /// Those that have keys of a span, in key order.
    fn within(&self, span: &KeySpan) -> impl Iterator<Item = &Route> {
        let first = self.of(&span.start).filter(|route| route.span.start < span.start);
        let more = self.by_start.range::<[u8], _>((Included(&*span.start), Unbounded));
        let more = more.map(|(_, route)| route).take_while(|route| route.span.start < span.end);
        first.into_iter().chain(more)
    }

    fn put(&mut self, route: Route) {
        self.starts.insert((route.range, route.span.start.clone()));
        self.by_start.insert(route.span.start.clone(), route);
    }

    fn take_out(&mut self, route: &Route) {
        self.by_start.remove(&route.span.start);
        self.starts.remove(&(route.range, route.span.start.clone()));
    }

    /// Takes up what somebody has said.
    pub(crate) fn learn(&mut self, told: Vec<RangeDescriptor>) -> Learned {
        let mut learned = Learned::default();
        for range in told {
            if self.within(&range.span).any(|known| known.generation >= range.generation) {
                continue;
            }
            let overlapping: Vec<Route> = self.within(&range.span).cloned().collect();
            learned.any = true;
            self.nodes = None;
            let mut holder = None;
            for known in overlapping {
                self.take_out(&known);
                if known.range != range.id {
                    learned.came_from.push((known.range, (range.id, range.span.clone())));
                }
                holder = holder.or(known.holder);
                let before = KeySpan::new(known.span.start.clone(), range.span.start.clone());
                let behind = KeySpan::new(range.span.end.clone(), known.span.end.clone());
                for span in [before, behind].into_iter().filter(|span| span.start < span.end) {
                    self.put(Route { span, ..known.clone() });
                }
            }
            let nodes: Vec<NodeId> = range.replicas.iter().map(|(_, node)| *node).collect();
            let holder = holder.filter(|holder| nodes.contains(holder));
            let (id, generation) = (range.id, range.generation);
            self.put(Route { range: id, span: range.span, generation, nodes, holder });
        }
        learned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_consensus::ReplicaId;

    fn range(id: u64, start: &'static str, end: &'static str, generation: u64) -> RangeDescriptor {
        let replicas = [(1, 7), (2, id)].map(|(replica, node)| (ReplicaId(replica), NodeId(node)));
        let replicas = replicas.to_vec();
        let span = KeySpan::new(start, end);
        RangeDescriptor { generation, ..RangeDescriptor::new(RangeId(id), span, replicas) }
    }

    fn shown(routes: &Routes) -> String {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let line = |route: &Route| {
            format!("{}[{},{})", route.range.0, text(&route.span.start), text(&route.span.end))
        };
        routes.all().map(line).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_told_takes_the_place_of_what_is_older() {
        let mut routes = Routes::default();
        let learn = |routes: &mut Routes, told| {
            let Learned { any, came_from } = routes.learn(told);
            (any, came_from)
        };
        assert_eq!(learn(&mut routes, vec![range(1, "a", "z", 1)]), (true, vec![]));
        routes.set_holder(RangeId(1), Some(NodeId(7)));
        // The other half was not told of.
        assert_eq!(
            learn(&mut routes, vec![range(2, "m", "z", 2)]),
            (true, vec![(RangeId(1), (RangeId(2), KeySpan::new("m", "z")))])
        );
        assert_eq!(shown(&routes), "1[a,m) 2[m,z)");
        assert_eq!(routes.of(b"n").and_then(|route| route.holder), Some(NodeId(7)));
        // Old news.
        assert_eq!(learn(&mut routes, vec![range(1, "a", "z", 1)]), (false, vec![]));
        let split = vec![range(1, "a", "d", 4), range(4, "g", "m", 4)];
        let from_first = vec![(RangeId(1), (RangeId(4), KeySpan::new("g", "m")))];
        assert_eq!(learn(&mut routes, split), (true, from_first));
        assert_eq!(shown(&routes), "1[a,d) 1[d,g) 4[g,m) 2[m,z)");
        let of = |key: &str| routes.of(key.as_bytes()).map(|route| route.range.0);
        assert_eq!([of("a"), of("f"), of("g"), of("z")], [Some(1), Some(1), Some(4), None]);
        let before = |key: &str| routes.before(key.as_bytes()).map(|route| route.range.0);
        assert_eq!([before("a"), before("d"), before("z")], [None, Some(1), Some(2)]);
        let nodes =
            |routes: &mut Routes| routes.nodes().iter().map(|node| node.0).collect::<Vec<u64>>();
        assert_eq!(nodes(&mut routes), [1, 2, 4, 7]);
        routes.learn(vec![range(9, "a", "d", 5)]);
        assert_eq!(nodes(&mut routes), [1, 2, 4, 7, 9]);
    }
}
