//! `braid demo`: a real hierarchy in a temporary store, and a shell on it. Without a terminal it
//! runs the statements on standard input and ends with them.

use std::net::SocketAddr;

use braid_server::{Server, ServerConfig};
use clap::Args;
use postgres::{Client, NoTls};

use crate::shell::Shell;
use crate::{CliResult, logs, start};

/// Arguments of `braid demo`.
#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Port for PostgreSQL clients; 0 takes any free one.
    #[arg(long, default_value_t = 26500)]
    port: u16,
    /// Port for /healthz and /metrics; 0 takes any free one.
    #[arg(long, default_value_t = 26580)]
    http_port: u16,
    /// Run these statements instead of opening a shell. Can be given several times.
    #[arg(short = 'c', long = "command")]
    commands: Vec<String>,
    /// Load TPC-C with this many warehouses, too.
    #[arg(long, default_value_t = 0)]
    warehouses: u32,
}

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
INSERT INTO customers
    SELECT i, 'Customer ' || i, (ARRAY['Lisbon', 'Oslo', 'Turin', 'Graz'])[i % 4 + 1]
    FROM generate_series(1, 100) AS g(i);
INSERT INTO orders
    SELECT c, o, timestamptz '2026-01-01 00:00:00+00' + (c * 20 + o) * interval '1 hour',
        (ARRAY['new', 'paid', 'sent'])[o % 3 + 1]
    FROM generate_series(1, 100) AS a(c), generate_series(1, 20) AS b(o);
INSERT INTO order_lines
    SELECT c, o, l, 'Product ' || (c * 7 + o * 3 + l) % 50, l, 9.90 * l
    FROM generate_series(1, 100) AS a(c), generate_series(1, 20) AS b(o),
        generate_series(1, 5) AS d(l);
";

const HINTS: &str = "
A customer, its orders and their lines lie next to each other on disk. Try:
  \\d order_lines
  EXPLAIN DELETE FROM customers WHERE id = 7;
  DELETE FROM customers WHERE id = 7;          -- one range tombstone, whatever is below
  SELECT * FROM customers c JOIN orders o USING (id) WHERE id = 8 LIMIT 5;
  SELECT count(*) FROM order_lines AS OF SYSTEM TIME '-10s' WHERE id = 7;
";

pub(crate) fn run(arguments: DemoArguments) -> CliResult {
    logs::init("warn");
    let directory = tempfile::Builder::new().prefix("braid-demo-").tempdir()?;
    let mut config = ServerConfig::new(directory.path().join("store"));
    config.listen = SocketAddr::from(([127, 0, 0, 1], arguments.port));
    config.http = Some(SocketAddr::from(([127, 0, 0, 1], arguments.http_port)));
    let server = Server::start(config)?;
    let url = start::url(server.address());

    let mut client = Client::connect(&url, NoTls)?;
    client.batch_execute(SCHEMA)?;
    if arguments.warehouses > 0 {
        braid_workload::tpcc::create(&mut client, braid_workload::tpcc::Layout::Interleaved)?;
        let report = braid_workload::tpcc::load(&mut client, arguments.warehouses, 1)?;
        println!("TPC-C: {report}");
    }
    drop(client);

    if arguments.commands.is_empty() {
        println!("BraidDB demo: customers, orders, order_lines in a temporary store.");
        println!("  SQL      {url}");
        if let Some(http) = server.http_address() {
            println!("  metrics  http://{http}/metrics (a console follows in a later version)");
        }
        println!("{HINTS}");
    }
    let mut shell = Shell::connect(&url)?;
    shell.serve(&arguments.commands)?;
    drop(shell);
    server.stop()?;
    Ok(())
}
