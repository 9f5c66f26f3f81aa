//! Several ranges are asked at the same time.
//!
//! ```text
//!   r1 r2 r3 r4     asked ─────────► r1 r3 have answered
//!                   r2 (another node serves it), r4 (silence)  ──► one by one, as ever
//! ```
//!
//! A commit over k ranges, or the look-up of keys that lie in k of them, waits for the slowest
//! instead of for all of them in turn. Whoever is believed to serve a range is asked; all that can
//! go wrong with that is left to [`Router::send_within`], which asks again: what is asked here has
//! a name, or changes nothing, and may be asked twice.

use braid_kv::{KvResult, Tally};
use braid_range::{Answer, Ask, NodeId, Request};

use crate::router::{ASK_PATIENCE, Router, Sent};
use crate::routes::Route;

/// So many requests are on their way at the same time.
const AT_ONCE: usize = 64;

impl Router {
    /// Asks all of them, first at the same time and then one by one who has not answered; stops
    /// with the statement of the calling thread. Who stops at one answer asks nobody more.
    pub(crate) fn send_to_all<'a>(
        &'a self,
        asks: Vec<(&'a Route, Ask)>,
    ) -> impl Iterator<Item = KvResult<Sent>> + 'a {
        let ask_of = |(route, ask): (_, Ask)| (route, move |_: NodeId| ask.clone());
        self.send_each(asks.into_iter().map(ask_of).collect())
    }

    /// The same, where what is asked depends on the node.
    pub(crate) fn send_each<'a, F: Fn(NodeId) -> Ask + 'a>(
        &'a self,
        asks: Vec<(&'a Route, F)>,
    ) -> impl Iterator<Item = KvResult<Sent>> + 'a {
        let answers = self.ask_at_once(&asks);
        asks.into_iter().zip(answers).map(|((route, ask), answer)| match answer {
            Some(answer) => Ok(Sent::Answer(answer)),
            None => self.send_stoppable(route, &ask),
        })
    }

    /// What those answer who are believed to serve these ranges; `None`: that one has to be asked
    /// in the usual way.
    fn ask_at_once<F: Fn(NodeId) -> Ask>(&self, asks: &[(&Route, F)]) -> Vec<Option<Answer>> {
        // One alone is asked in the usual way at once.
        if asks.len() < 2 {
            return vec![None; asks.len()];
        }
        asks.chunks(AT_ONCE).flat_map(|some| self.ask_some(some)).collect()
    }

    fn ask_some<F: Fn(NodeId) -> Ask>(&self, asks: &[(&Route, F)]) -> Vec<Option<Answer>> {
        let request = |(route, ask): &(&Route, F)| {
            let node = route.holder.unwrap_or(route.nodes[0]);
            self.count_range_call(route.range, node);
            (node, Request { range: route.range, ask: ask(node) })
        };
        let requests: Vec<(NodeId, Request)> = asks.iter().map(request).collect();
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let replies = self.transport.ask_all(&requests, ASK_PATIENCE, stop);
        let taken = requests.iter().zip(replies).map(|((node, request), reply)| {
            let reply = reply?;
            self.take_times(request, *node, &reply);
            match reply.answer {
                Answer::NotHolder { .. }
                | Answer::NoReplica
                | Answer::Again
                | Answer::Waits { .. }
                | Answer::Blocked { .. }
                | Answer::WrongRange { .. } => None,
                answer => {
                    self.routes.lock().set_holder(request.range, Some(*node));
                    Some(answer)
                }
            }
        });
        taken.collect()
    }
}
