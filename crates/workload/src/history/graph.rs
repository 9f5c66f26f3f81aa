//! Who must come before whom. Strongly connected parts are found in linear time (Tarjan, without
//! recursion); only inside of one is a shortest cycle looked for.

use std::collections::{HashMap, HashSet, VecDeque};

use super::record::Key;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Why {
    /// It wrote the version before.
    Ww(Key),
    /// It wrote what was read.
    Wr(Key),
    /// It read what was then overwritten.
    Rw { key: Key, scan: bool },
    /// It was over before the other began.
    Time,
}

impl Why {
    /// Whether this is a read of what was overwritten.
    pub(crate) fn is_rw(self) -> bool {
        matches!(self, Why::Rw { .. })
    }
}

/// A graph over numbered nodes; each edge has its reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    edges: Vec<Vec<(u32, Why)>>,
}

/// A cycle: nodes, each with the reason why it comes before the next.
pub type Cycle = Vec<(u32, Why)>;

impl Graph {
    /// A graph without edges.
    pub fn new(nodes: usize) -> Graph {
        Graph { edges: vec![Vec::new(); nodes] }
    }

    /// Adds an edge, unless it is a loop.
    pub fn add(&mut self, from: u32, to: u32, why: Why) {
        if from != to {
            self.edges[from as usize].push((to, why));
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.edges.len()
    }

    /// The edges from a node.
    pub fn from(&self, node: u32) -> &[(u32, Why)] {
        &self.edges[node as usize]
    }

    /// Number of edges.
    pub fn size(&self) -> usize {
        self.edges.iter().map(Vec::len).sum()
    }

    /// The edges that are wanted.
    pub fn only(&self, wanted: impl Fn(Why) -> bool) -> Graph {
        let edges =
            self.edges.iter().map(|of| of.iter().copied().filter(|e| wanted(e.1)).collect());
        Graph { edges: edges.collect() }
    }

    /// Each node twice: reached by a read of what was overwritten (2n + 1) or otherwise (2n). Two
    /// such edges cannot follow each other here, so every cycle is one that snapshots forbid.
    pub(crate) fn without_neighbours(&self) -> Graph {
        let mut out = Graph::new(self.nodes() * 2);
        for (from, of) in self.edges.iter().enumerate() {
            let from = from as u32;
            for &(to, why) in of {
                if why.is_rw() {
                    out.add(from * 2, to * 2 + 1, why);
                } else {
                    out.add(from * 2, to * 2, why);
                    out.add(from * 2 + 1, to * 2, why);
                }
            }
        }
        out
    }

    /// Strongly connected parts of more than one node.
    pub fn parts(&self) -> Vec<Vec<u32>> {
        let mut search = Search {
            index: vec![u32::MAX; self.nodes()],
            low: vec![0; self.nodes()],
            on_stack: vec![false; self.nodes()],
            stack: Vec::new(),
            next: 0,
            out: Vec::new(),
        };
        for root in 0..self.nodes() as u32 {
            if search.index[root as usize] == u32::MAX {
                search.visit(self, root);
            }
        }
        search.out
    }

    /// A shortest cycle through an edge for which `first` holds, inside `part`. At most `tries`
    /// edges are tried.
    pub fn cycle(&self, part: &[u32], tries: usize, first: impl Fn(Why) -> bool) -> Option<Cycle> {
        let inside: HashSet<u32> = part.iter().copied().collect();
        let mut best: Option<Cycle> = None;
        let mut tried = 0;
        for &from in part {
            for &(to, why) in self.from(from) {
                if !first(why) || !inside.contains(&to) {
                    continue;
                }
                tried += 1;
                if tried > tries {
                    return best;
                }
                if let Some(back) = self.path(to, from, &inside) {
                    let cycle: Cycle = [(from, why)].into_iter().chain(back).collect();
                    if best.as_ref().is_none_or(|b| cycle.len() < b.len()) {
                        best = Some(cycle);
                    }
                }
            }
        }
        best
    }

    /// A shortest way inside of a part.
    pub fn path(&self, from: u32, to: u32, inside: &HashSet<u32>) -> Option<Cycle> {
        let mut came: HashMap<u32, (u32, Why)> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                let mut back = Vec::new();
                let mut at = to;
                while at != from {
                    let (before, why) = came[&at];
                    back.push((before, why));
                    at = before;
                }
                back.reverse();
                return Some(back);
            }
            for &(next, why) in self.from(node) {
                if next != from && inside.contains(&next) && !came.contains_key(&next) {
                    came.insert(next, (node, why));
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

struct Search {
    index: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<u32>,
    next: u32,
    out: Vec<Vec<u32>>,
}

impl Search {
    fn enter(&mut self, node: u32) {
        self.index[node as usize] = self.next;
        self.low[node as usize] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node as usize] = true;
    }

    fn visit(&mut self, graph: &Graph, root: u32) {
        let mut calls: Vec<(u32, usize)> = vec![(root, 0)];
        self.enter(root);
        while let Some((node, at)) = calls.pop() {
            let n = node as usize;
            if let Some(&(to, _)) = graph.edges[n].get(at) {
                calls.push((node, at + 1));
                if self.index[to as usize] == u32::MAX {
                    self.enter(to);
                    calls.push((to, 0));
                } else if self.on_stack[to as usize] {
                    self.low[n] = self.low[n].min(self.index[to as usize]);
                }
                continue;
            }
            if let Some(&(caller, _)) = calls.last() {
                self.low[caller as usize] = self.low[caller as usize].min(self.low[n]);
            }
            if self.low[n] == self.index[n] {
                self.leave(node);
            }
        }
    }

    fn leave(&mut self, root: u32) {
        let mut part = Vec::new();
        while let Some(node) = self.stack.pop() {
            self.on_stack[node as usize] = false;
            part.push(node);
            if node == root {
                break;
            }
        }
        if part.len() > 1 {
            self.out.push(part);
        }
    }
}
