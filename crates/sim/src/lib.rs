//! A whole cluster in one thread, from one seed.
//!
//! ```text
//!   seed --> Plan       how many nodes, clients, transactions; which faults, how often
//!            World      virtual time: the next event is taken, and may make others
//!              Clients    transactions over lists, registers and families; what they saw
//!              Gateways   clients on nodes, which go by a schema and leases of it
//!              Network    messages lost, delayed, doubled, out of order; directions cut
//!              Node       Replicas on a disk that can lose power, with a clock of its own
//!              Trouble    crashes, partitions, clocks that jump; ends before the clients do
//!            Verdict    the history against serializability and real time; replicas alike
//! ```
//!
//! Only the outside world is simulated: nodes run the code that they run in production. The same
//! seed gives the same *trace*, byte for byte.
//!
//! Each run has two parts. In the first one things break. Then everything is healed, and each
//! transaction must come to an end: what it asked for has happened or not, and its client can
//! find out. At the end all replicas must have the same rows.
//!
//! [`Sabotage`] breaks a promise of the world around the nodes (a disk that forgets what it has
//! synced, clocks beyond the bound, a client that retries under another name): a run that does
//! not notice would prove nothing.

mod actor;
mod client;
mod clock;
mod data;
mod desk;
mod gateways;
mod line;
mod live;
mod membership;
mod network;
mod node;
mod past;
mod plan;
mod room;
mod sabotage;
mod schemas;
mod trouble;
mod verdict;
mod work;
mod world;

pub use live::{LiveCluster, LiveOptions};
pub use plan::{ClientPlan, DiskPlan, LatePlan, LeasePlan, LogPlan, NetworkPlan, Plan, Sabotage};
pub use verdict::Verdict;
pub use world::run;
