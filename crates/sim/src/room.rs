//! What a node does whose disk is full: as the thread that drives its replicas, it looks at the
//! disk before time passes for them, and lets them stand still while there is no room.

use braid_consensus::{Error, Result};
use braid_range::Room;

use crate::world::{Event, STORE_SYNC_MICROS, TICK_MICROS, World};

impl World {
    /// Whether a process has room for what happens to it. It looks with each tick: a disk that
    /// becomes full in between is met in the middle of a write.
    pub(crate) fn has_room_for(&mut self, node: u64, event: &Event) -> bool {
        let here = &mut self.nodes[node as usize - 1];
        let before = here.room;
        let has_room = match event {
            Event::Tick { .. } => here.look_at_room(),
            _ => before != Room::Out,
        };
        let now = here.room;
        if now != before {
            self.note(format!("n{node} has room: {now:?}"));
            match now {
                Room::Enough => self.count("rooms regained"),
                Room::Short => self.count("short of room"),
                Room::Out => self.count("out of room"),
            }
            self.settle(node, Ok(()));
        }
        has_room
    }

    /// The same that happens to a process with room, to one without.
    pub(crate) fn happen_without_room(&mut self, node: u64, event: Event) {
        match event {
            Event::Tick { .. } => self.after(TICK_MICROS, event),
            Event::StoreSync { .. } => self.after(STORE_SYNC_MICROS, event),
            Event::Request { number, request, .. } => {
                let here = &mut self.nodes[node as usize - 1];
                let process = here.process.as_mut().expect("checked before");
                process.request_without_room(number, request);
                self.settle(node, Ok(()));
            }
            // They are lost; what is durable is said by the next one that is.
            _ => {}
        }
    }

    /// Whether a process has stopped since its disk was full in the middle of a write: it begins
    /// anew after a while.
    pub(crate) fn stops_on_full_disk(&mut self, node: u64, result: &Result<()>) -> bool {
        let is_full = matches!(result, Err(Error::Log(error)) if error.is_disk_full());
        if is_full {
            self.count("stopped by full disks");
            let down = self.random.between(10_000, 3_000_000);
            self.crash(node, down);
        }
        is_full
    }
}
