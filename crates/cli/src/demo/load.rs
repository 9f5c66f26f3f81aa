//! The rows of the demo, with a bar while they come.

use std::io::{self, IsTerminal, Write};

use postgres::{Client, NoTls};

use crate::CliResult;

const SCHEMA: &str = "
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE orders (id bigint, order_no bigint, placed timestamptz NOT NULL, status text,
    PRIMARY KEY (id, order_no))
    INTERLEAVE IN PARENT customers ON DELETE CASCADE;
CREATE TABLE order_lines (id bigint, order_no bigint, line int, product text NOT NULL,
    quantity int NOT NULL CHECK (quantity > 0), price numeric(10,2) NOT NULL,
    PRIMARY KEY (id, order_no, line))
    INTERLEAVE IN PARENT orders ON DELETE CASCADE;
CREATE INDEX orders_by_status ON orders (id, status) INTERLEAVE IN customers;
";

/// Families of the demo, and how many are loaded at once.
const CUSTOMERS: i64 = 100;
const AT_ONCE: i64 = 10;

/// The rows of customers from one number to another, with their orders and lines.
fn families(from: i64, to: i64) -> String {
    format!(
        "BEGIN;
         INSERT INTO customers
             SELECT i, 'Customer ' || i, (ARRAY['Lisbon', 'Oslo', 'Turin', 'Graz'])[i % 4 + 1]
             FROM generate_series({from}, {to}) AS g(i);
         INSERT INTO orders
             SELECT c, o, timestamptz '2026-01-01 00:00:00+00' + (c * 20 + o) * interval '1 hour',
                 (ARRAY['new', 'paid', 'sent'])[o % 3 + 1]
             FROM generate_series({from}, {to}) AS a(c), generate_series(1, 20) AS b(o);
         INSERT INTO order_lines
             SELECT c, o, l, 'Product ' || (c * 7 + o * 3 + l) % 50, l, 9.90 * l
             FROM generate_series({from}, {to}) AS a(c), generate_series(1, 20) AS b(o),
                 generate_series(1, 5) AS d(l);
         COMMIT"
    )
}

/// Makes the tables and loads them.
pub(super) fn all(url: &str, warehouses: u32) -> CliResult {
    let mut client = Client::connect(url, NoTls)?;
    let bar = Bar::new("customers, orders and their lines");
    client.batch_execute(SCHEMA)?;
    for from in (1..=CUSTOMERS).step_by(AT_ONCE as usize) {
        bar.show(from - 1, CUSTOMERS);
        client.batch_execute(&families(from, from + AT_ONCE - 1))?;
    }
    client.batch_execute("ANALYZE customers, orders, order_lines")?;
    bar.end();
    if warehouses > 0 {
        braid_workload::tpcc::create(&mut client, braid_workload::tpcc::Layout::Interleaved)?;
        let report = braid_workload::tpcc::load(&mut client, warehouses, 1)?;
        println!("TPC-C: {report}");
    }
    Ok(())
}

/// How far something is, for a person: nothing is written where nobody looks.
struct Bar {
    what: &'static str,
    shown: bool,
}

impl Bar {
    const WIDTH: i64 = 30;

    fn new(what: &'static str) -> Bar {
        Bar { what, shown: io::stderr().is_terminal() }
    }

    fn show(&self, done: i64, all: i64) {
        if self.shown {
            let full = Bar::WIDTH * done / all;
            let bar = format!(
                "{}{}",
                "#".repeat(full as usize),
                ".".repeat((Bar::WIDTH - full) as usize)
            );
            eprint!("\r[{bar}] {:3} %  {}", 100 * done / all, self.what);
            // It is a comfort.
            let _shown = io::stderr().flush();
        }
    }

    /// Takes it from the screen.
    fn end(&self) {
        if self.shown {
            eprint!("\r{:1$}\r", "", 80);
        }
    }
}
