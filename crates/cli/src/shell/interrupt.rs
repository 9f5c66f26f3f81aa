//! Ctrl-C cancels the statement that runs, and never ends the shell of a person.
//!
//! While a person types, the terminal sends Ctrl-C as a key. Otherwise it is a signal, and a thread
//! waits for that: it asks the node to cancel what runs, and notes that it was asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::wire::CancelKey;

/// What runs, and how often Ctrl-C was pressed.
#[derive(Default)]
pub(super) struct Interrupts {
    runs: Mutex<Option<CancelKey>>,
    pressed: AtomicU64,
    /// Ctrl-C ends the process while nothing runs: nobody types.
    ends: AtomicBool,
}

/// Those of the process: signals are the process's, too.
pub(super) fn interrupts() -> &'static Arc<Interrupts> {
    static ALL: OnceLock<Arc<Interrupts>> = OnceLock::new();
    ALL.get_or_init(|| {
        let all = Arc::new(Interrupts::default());
        let watches = all.clone();
        let watch = move || watches.watch();
        if let Err(e) = std::thread::Builder::new().name("interrupts".into()).spawn(watch) {
            eprintln!("Ctrl-C will end the shell: {e}");
        }
        all
    })
}

/// Until it is dropped, Ctrl-C is for this statement.
pub(super) struct Running<'a>(&'a Interrupts);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.runs.lock() = None;
    }
}

impl Interrupts {
    /// A statement runs.
    pub(super) fn run(&self, key: CancelKey) -> Running<'_> {
        *self.runs.lock() = Some(key);
        Running(self)
    }

    /// How often Ctrl-C was pressed while something ran: who repeats something looks whether it
    /// has changed.
    pub(super) fn pressed(&self) -> u64 {
        self.pressed.load(Ordering::SeqCst)
    }

    /// Whether the process ends by Ctrl-C while nothing runs; what held before.
    pub(super) fn end_when_idle(&self, ends: bool) -> bool {
        self.ends.swap(ends, Ordering::SeqCst)
    }

    fn watch(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            self.pressed.fetch_add(1, Ordering::SeqCst);
            let runs = *self.runs.lock();
            match runs {
                Some(key) => {
                    if let Err(e) = key.cancel() {
                        eprintln!("the statement cannot be cancelled: {e}");
                    }
                }
                // As a shell reports a process that a signal has ended.
                None if self.ends.load(Ordering::SeqCst) => std::process::exit(130),
                None => {}
            }
        }
    }
}
