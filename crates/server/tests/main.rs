//! What clients see of a server; each area in its own file. One executable, since each is large and
//! takes long to link. What needs a process for itself has its own: memory, limits of
//! time, and messages that may make a thread panic.

mod background;
mod channels;
mod conversation;
mod encodings;
mod observed;
mod planning;
mod support;
