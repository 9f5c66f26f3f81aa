//! Aggregates that keep their rows say truly how much they need to end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use braid_scalar::{AggregateTypes, Code, EvalContext, resolve};
use braid_types::{Datum, SqlType};

thread_local! {
    /// Bytes that the thread holds, and the most that it held.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(change: isize) {
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is the system's; counting takes no memory.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as asked.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as asked.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The most that is held in `f` beyond what is held before.
fn most<T>(f: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let made = f();
    ((HELD.get().1 - before) as usize, made)
}

fn rows(ty: &SqlType, n: usize, length: usize) -> Vec<Datum> {
    (0..n)
        .map(|at| match ty {
            SqlType::Bytea => Datum::Bytea(vec![b'x'; length].into()),
            SqlType::Int8 => Datum::Int8(at as i64),
            _ => Datum::text(format!("{at:0length$}")),
        })
        .collect()
}

#[test]
fn what_lists_need_to_end_is_what_they_say() {
    let (text, bytes, int) = (&SqlType::Text, &SqlType::Bytea, &SqlType::Int8);
    for (name, types) in [
        ("array_agg", vec![text]),
        ("array_agg", vec![int]),
        ("string_agg", vec![text, text]),
        ("string_agg", vec![bytes, bytes]),
        ("json_agg", vec![text]),
        ("json_agg", vec![int]),
        ("jsonb_agg", vec![text]),
        ("jsonb_agg", vec![int]),
        ("json_object_agg", vec![text, int]),
        ("jsonb_object_agg", vec![text, int]),
        ("jsonb_object_agg", vec![text, text]),
        ("mode", vec![text]),
    ] {
        for length in [8, 40, 1000] {
            let types: Vec<SqlType> = types.iter().map(|ty| (*ty).clone()).collect();
            let choice = resolve(name, &types, false).expect("an aggregate");
            let Code::Aggregate(code) = choice.function.code else { panic!("{name}") };
            let mut state =
                (code.start)(AggregateTypes { args: &choice.args, ret: &choice.ret, sorted: &[] });
            let columns: Vec<Vec<Datum>> =
                types.iter().map(|ty| rows(ty, (1 << 23) / (length + 100), length)).collect();
            let mut kept = 0;
            for at in 0..columns[0].len() {
                let row: Vec<Datum> = columns.iter().map(|column| column[at].clone()).collect();
                kept += size_of::<Arc<[Datum]>>() + row.iter().map(Datum::memory).sum::<usize>();
                state.update(&row).expect("taken");
            }
            let (needed, value) = most(|| state.finish(&EvalContext::constant()));
            assert!(!value.expect("a value").is_null());
            let said = kept * state.copies_at_end();
            let shown =
                format!("{name} {types:?} of {length} bytes: {needed} of {said} ({kept} kept)");
            println!("{shown}");
            assert!(needed <= said, "{shown}");
        }
    }
}
