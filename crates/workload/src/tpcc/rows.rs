//! Random rows in COPY's text form, after clause 4.3.3 of the specification.

use std::fmt::Write;

use braid_env::random::Random;

/// Items, and stock rows of each warehouse.
pub const ITEMS: u32 = 100_000;
/// Districts of each warehouse.
pub(super) const DISTRICTS: u32 = 10;
/// Customers and orders of each district.
pub const CUSTOMERS: u32 = 3_000;
/// Orders of each district that are not delivered yet: the last ones.
pub(super) const NEW_ORDERS: u32 = 900;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const DATE: &str = "2026-01-01 00:00:00";

/// Writes rows as lines of tab-separated columns.
pub(super) struct RowWriter {
    random: Random,
    pub(super) out: String,
}

impl RowWriter {
    pub(super) fn new(seed: u64) -> RowWriter {
        RowWriter { random: Random::seeded(seed), out: String::new() }
    }

    fn put(&mut self, args: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _infallible = self.out.write_fmt(args);
    }

    fn text(&mut self, min: u64, max: u64) {
        let length = self.random.between(min, max);
        for _ in 0..length {
            let letter = LETTERS[self.random.below(LETTERS.len() as u64) as usize];
            self.out.push(char::from(letter));
        }
        self.out.push('\t');
    }

    /// A number with `scale` decimals between `min` and `max` units of the last decimal.
    fn decimal(&mut self, min: u64, max: u64, scale: u32) {
        let units = self.random.between(min, max);
        let one = 10u64.pow(scale);
        let width = scale as usize;
        self.put(format_args!("{}.{:0width$}\t", units / one, units % one));
    }

    fn address(&mut self) {
        self.text(10, 20);
        self.text(10, 20);
        self.text(10, 20);
        self.text(2, 2);
        let zip = self.random.below(10_000);
        self.put(format_args!("{zip:04}11111\t"));
    }

    /// One in ten texts contains "ORIGINAL".
    fn data(&mut self) {
        if self.random.chance(1, 10) {
            self.out.push_str("ORIGINAL");
        }
        self.text(18, 42);
    }

    fn end(&mut self) {
        debug_assert!(self.out.ends_with('\t'), "every column ends with a tab");
        self.out.pop();
        self.out.push('\n');
    }

    pub(super) fn item(&mut self, id: u32) {
        let image = self.random.between(1, 10_000);
        self.put(format_args!("{id}\t{image}\t"));
        self.text(14, 24);
        self.decimal(100, 10_000, 2);
        self.data();
        self.end();
    }

    pub(super) fn warehouse(&mut self, id: u32) {
        self.put(format_args!("{id}\t"));
        self.text(6, 10);
        self.address();
        self.decimal(0, 2_000, 4);
        self.put(format_args!("300000.00\t"));
        self.end();
    }

    pub(super) fn district(&mut self, w: u32, id: u32) {
        self.put(format_args!("{w}\t{id}\t"));
        self.text(6, 10);
        self.address();
        self.decimal(0, 2_000, 4);
        self.put(format_args!("30000.00\t{}\t", CUSTOMERS + 1));
        self.end();
    }

    pub(super) fn customer(&mut self, w: u32, d: u32, id: u32) {
        self.put(format_args!("{w}\t{d}\t{id}\t"));
        self.text(8, 16);
        self.put(format_args!("OE\t"));
        let name = if id <= 1000 { id - 1 } else { self.random.below(1000) as u32 };
        self.out.push_str(&last_name(name));
        self.out.push('\t');
        self.address();
        let phone = self.random.below(10_000_000_000_000_000);
        let credit = if self.random.chance(1, 10) { "BC" } else { "GC" };
        self.put(format_args!("{phone:016}\t{DATE}\t{credit}\t50000.00\t"));
        self.decimal(0, 5_000, 4);
        self.put(format_args!("-10.00\t10.00\t1\t0\t"));
        self.text(300, 500);
        self.end();
    }

    pub(super) fn history(&mut self, w: u32, d: u32, c: u32) {
        self.put(format_args!("{c}\t{d}\t{w}\t{d}\t{w}\t{DATE}\t10.00\t"));
        self.text(12, 24);
        self.end();
    }

    /// Writes an order; returns how many lines it has.
    pub(super) fn order(&mut self, w: u32, d: u32, id: u32, customer: u32) -> u32 {
        let lines = self.random.between(5, 15) as u32;
        self.put(format_args!("{w}\t{d}\t{id}\t{customer}\t{DATE}\t"));
        if is_new(id) {
            self.out.push_str("\\N\t");
        } else {
            let carrier = self.random.between(1, 10);
            self.put(format_args!("{carrier}\t"));
        }
        self.put(format_args!("{lines}\t1\t"));
        self.end();
        lines
    }

    pub(super) fn order_line(&mut self, w: u32, d: u32, order: u32, number: u32) {
        let item = self.random.between(1, u64::from(ITEMS));
        self.put(format_args!("{w}\t{d}\t{order}\t{number}\t{item}\t{w}\t"));
        if is_new(order) {
            self.out.push_str("\\N\t5\t");
            self.decimal(1, 999_999, 2);
        } else {
            self.put(format_args!("{DATE}\t5\t0.00\t"));
        }
        self.text(24, 24);
        self.end();
    }

    pub(super) fn new_order(&mut self, w: u32, d: u32, order: u32) {
        self.put(format_args!("{w}\t{d}\t{order}\t"));
        self.end();
    }

    pub(super) fn stock(&mut self, w: u32, item: u32) {
        let quantity = self.random.between(10, 100);
        self.put(format_args!("{w}\t{item}\t{quantity}\t"));
        for _ in 0..10 {
            self.text(24, 24);
        }
        self.put(format_args!("0\t0\t0\t"));
        self.data();
        self.end();
    }

    /// Customers in random order: the n-th order belongs to the n-th of them.
    pub(super) fn shuffled_customers(&mut self) -> Vec<u32> {
        let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
        self.random.shuffle(&mut customers);
        customers
    }
}

/// The last name for a number below 1,000: a syllable for each digit.
pub(super) fn last_name(number: u32) -> String {
    let digits = [number / 100, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Whether an order of the initial load is not delivered yet.
pub(super) fn is_new(order: u32) -> bool {
    order > CUSTOMERS - NEW_ORDERS
}
