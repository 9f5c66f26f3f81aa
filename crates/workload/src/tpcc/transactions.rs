//! The five transactions, after clause 2 of the specification.
//!
//! | transaction  | share | does |
//! |---|---|---|
//! | New-Order    | 45 %  | an order of 5 to 15 lines; 1 % name no item, and are rolled back |
//! | Payment      | 43 %  | adds to warehouse, district, customer; 15 % of another warehouse |
//! | Order-Status | 4 %   | the last order of a customer |
//! | Delivery     | 4 %   | the oldest new order of each district |
//! | Stock-Level  | 4 %   | how many items of the last 20 orders are short |
//!
//! Amounts go to the server as whole cents. Statements are prepared once for each connection.

use std::collections::HashMap;
use std::fmt;

use braid_env::random::Random;
use postgres::types::ToSql;
use postgres::{Client, Error, Row, Statement, Transaction};

use super::rows::{DISTRICTS, last_name};
use super::run::RunSettings;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The one that is counted.
    NewOrder,
    /// Payment.
    Payment,
    /// Order-Status.
    OrderStatus,
    /// Delivery.
    Delivery,
    /// Stock-Level.
    StockLevel,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// One by chance, in the shares of the specification.
    pub(super) fn random(random: &mut Random) -> Kind {
        match random.below(100) {
            0..45 => Kind::NewOrder,
            45..88 => Kind::Payment,
            88..92 => Kind::OrderStatus,
            92..96 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::NewOrder => "New-Order",
            Kind::Payment => "Payment",
            Kind::OrderStatus => "Order-Status",
            Kind::Delivery => "Delivery",
            Kind::StockLevel => "Stock-Level",
        })
    }
}

/// What a transaction is about; the same when it is tried again.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) kind: Kind,
    w: i32,
    d: i32,
    customer: Who,
    /// Warehouse and district of the customer who pays.
    of: (i32, i32),
    cents: i64,
    /// Item, supplying warehouse, quantity.
    lines: Vec<(i32, i32, i32)>,
    carrier: i32,
    threshold: i32,
}

/// How a customer is named.
#[derive(Clone, Debug)]
enum Who {
    Id(i32),
    Last(String),
}

/// The specification's non-uniform numbers: some values are asked for more often.
fn nonuniform(random: &mut Random, a: u64, low: u64, high: u64) -> u64 {
    // The constant of the run; any will do as long as it stays.
    let c = a / 3;
    ((random.between(0, a) | random.between(low, high)) + c) % (high - low + 1) + low
}

impl Input {
    /// Of a terminal of this warehouse.
    pub(super) fn random(random: &mut Random, w: i32, loaded: &RunSettings) -> Input {
        let warehouses = loaded.warehouses as i32;
        let kind = Kind::random(random);
        let district = |random: &mut Random| random.between(1, u64::from(DISTRICTS)) as i32;
        let other = |random: &mut Random| loop {
            let other = random.between(1, warehouses as u64) as i32;
            if other != w || warehouses == 1 {
                break other;
            }
        };
        let d = district(random);
        let id = nonuniform(random, 1023, 1, u64::from(loaded.customers)) as i32;
        let by_name = kind != Kind::NewOrder && random.chance(60, 100);
        let customer = match by_name {
            true => Who::Last(last_name(nonuniform(random, 255, 0, 999) as u32)),
            false => Who::Id(id),
        };
        let remote = kind == Kind::Payment && random.chance(15, 100);
        let of = if remote { (other(random), district(random)) } else { (w, d) };
        let mut lines = Vec::new();
        if kind == Kind::NewOrder {
            for _ in 0..random.between(5, 15) {
                let item = nonuniform(random, 8191, 1, u64::from(loaded.items)) as i32;
                let from = if random.chance(1, 100) { other(random) } else { w };
                lines.push((item, from, random.between(1, 10) as i32));
            }
            if random.chance(1, 100) {
                let last = lines.len() - 1;
                lines[last].0 = loaded.items as i32 + 1;
            }
            // Stock is locked in one order, so that nobody waits in a circle.
            lines.sort_unstable_by_key(|(item, from, _)| (*from, *item));
            lines.dedup_by_key(|(item, from, _)| (*from, *item));
        }
        Input {
            kind,
            w,
            d,
            customer,
            of,
            cents: random.between(100, 500_000) as i64,
            lines,
            carrier: random.between(1, 10) as i32,
            threshold: random.between(10, 20) as i32,
        }
    }
}

/// A connection with its prepared statements.
pub(super) struct Terminal {
    client: Client,
    prepared: HashMap<String, Statement>,
}

/// A transaction, and the statements prepared on its connection.
struct Work<'a> {
    txn: Transaction<'a>,
    prepared: &'a mut HashMap<String, Statement>,
}

type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Work<'_> {
    fn statement(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(known) = self.prepared.get(sql) {
            return Ok(known.clone());
        }
        let new = self.txn.prepare(sql)?;
        self.prepared.insert(sql.to_string(), new.clone());
        Ok(new)
    }

    fn rows(&mut self, sql: &str, args: Args<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.statement(sql)?;
        self.txn.query(&statement, args)
    }

    fn row(&mut self, sql: &str, args: Args<'_>) -> Result<Row, Error> {
        let statement = self.statement(sql)?;
        self.txn.query_one(&statement, args)
    }

    fn write(&mut self, sql: &str, args: Args<'_>) -> Result<u64, Error> {
        let statement = self.statement(sql)?;
        self.txn.execute(&statement, args)
    }

    /// The customer's id; of several with one name the one in the middle, by first name.
    fn customer(&mut self, who: &Who, (w, d): (i32, i32)) -> Result<i32, Error> {
        match who {
            Who::Id(id) => Ok(*id),
            Who::Last(name) => {
                let rows = self.rows(
                    "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 \
                     ORDER BY c_first",
                    &[&w, &d, name],
                )?;
                // Names that nobody has there do not occur in a loaded database.
                Ok(rows.get(rows.len().saturating_sub(1) / 2).map_or(1, |row| row.get(0)))
            }
        }
    }

    /// `false`: it was to be rolled back.
    fn run(&mut self, input: &Input) -> Result<bool, Error> {
        match input.kind {
            Kind::NewOrder => return self.new_order(input),
            Kind::Payment => self.payment(input),
            Kind::OrderStatus => self.order_status(input),
            Kind::Delivery => self.delivery(input),
            Kind::StockLevel => self.stock_level(input),
        }?;
        Ok(true)
    }

    fn new_order(&mut self, input: &Input) -> Result<bool, Error> {
        let Input { w, d, lines, .. } = input;
        let Who::Id(c) = input.customer else { unreachable!("orders name their customer by id") };
        self.row("SELECT w_tax::float8 FROM warehouse WHERE w_id = $1", &[w])?;
        let order: i32 = self
            .row(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_next_o_id - 1, d_tax::float8",
                &[w, d],
            )?
            .get(0);
        self.row(
            "SELECT c_discount::float8, c_last, c_credit FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            &[w, d, &c],
        )?;
        let ids: Vec<i32> = lines.iter().map(|line| line.0).collect();
        let items = self.rows(
            "SELECT i_id, (i_price * 100)::int, i_name, i_data FROM item WHERE i_id = ANY ($1)",
            &[&ids],
        )?;
        let prices: HashMap<i32, i32> = items.iter().map(|row| (row.get(0), row.get(1))).collect();
        if lines.iter().any(|line| !prices.contains_key(&line.0)) {
            return Ok(false);
        }
        let (count, local) = (lines.len() as i32, i32::from(lines.iter().all(|line| line.1 == *w)));
        self.write(
            "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, localtimestamp, $5, $6)",
            &[w, d, &order, &c, &count, &local],
        )?;
        self.write("INSERT INTO new_order VALUES ($1, $2, $3)", &[w, d, &order])?;
        let places = self.take_stock(input)?;
        self.order_lines(input, order, &prices, &places)?;
        Ok(true)
    }

    /// Takes what was ordered out of stock; for each line the text that goes with it.
    fn take_stock(&mut self, input: &Input) -> Result<Vec<String>, Error> {
        let mut known: HashMap<(i32, i32), (i32, String)> = HashMap::new();
        let mut from: Vec<i32> = input.lines.iter().map(|line| line.1).collect();
        from.dedup();
        for w in from {
            let items: Vec<i32> =
                input.lines.iter().filter(|line| line.1 == w).map(|line| line.0).collect();
            let sql = format!(
                "SELECT s_i_id, s_quantity, s_dist_{:02}, s_data FROM stock \
                 WHERE s_w_id = $1 AND s_i_id = ANY ($2) FOR UPDATE",
                input.d
            );
            for row in self.rows(&sql, &[&w, &items])? {
                known.insert((w, row.get(0)), (row.get(1), row.get(2)));
            }
        }
        let mut places = Vec::new();
        for (item, from, quantity) in &input.lines {
            let (left, place) = known.remove(&(*from, *item)).unwrap_or_default();
            let left = if left - quantity >= 10 { left - quantity } else { left - quantity + 91 };
            let remote = i32::from(*from != input.w);
            self.write(
                "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $3 \
                 WHERE s_w_id = $4 AND s_i_id = $5",
                &[&left, quantity, &remote, from, item],
            )?;
            places.push(place);
        }
        Ok(places)
    }

    fn order_lines(
        &mut self,
        input: &Input,
        order: i32,
        prices: &HashMap<i32, i32>,
        places: &[String],
    ) -> Result<(), Error> {
        let numbers: Vec<i32> = (1..=input.lines.len() as i32).collect();
        let cents: Vec<i64> =
            input.lines.iter().map(|line| i64::from(prices[&line.0]) * i64::from(line.2)).collect();
        let mut args: Vec<&(dyn ToSql + Sync)> = vec![&input.w, &input.d, &order];
        let mut rows = Vec::new();
        for (at, line) in input.lines.iter().enumerate() {
            let n = args.len();
            rows.push(format!(
                "($1, $2, $3, ${}, ${}, ${}, ${}, ${}::bigint * 0.01, ${})",
                n + 1,
                n + 2,
                n + 3,
                n + 4,
                n + 5,
                n + 6
            ));
            args.extend([&numbers[at] as &(dyn ToSql + Sync), &line.0, &line.1, &line.2]);
            args.extend([&cents[at] as &(dyn ToSql + Sync), &places[at]]);
        }
        let sql = format!(
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES {}",
            rows.join(", ")
        );
        self.write(&sql, &args).map(|_| ())
    }

    fn payment(&mut self, input: &Input) -> Result<(), Error> {
        let Input { w, d, of, cents, .. } = input;
        let warehouse: String = self
            .row(
                "UPDATE warehouse SET w_ytd = w_ytd + $1::bigint * 0.01 WHERE w_id = $2 \
                 RETURNING w_name",
                &[cents, w],
            )?
            .get(0);
        let district: String = self
            .row(
                "UPDATE district SET d_ytd = d_ytd + $1::bigint * 0.01 \
                 WHERE d_w_id = $2 AND d_id = $3 RETURNING d_name",
                &[cents, w, d],
            )?
            .get(0);
        let c = self.customer(&input.customer, *of)?;
        let credit: String = self
            .row(
                "UPDATE customer SET c_balance = c_balance - $1::bigint * 0.01, \
                 c_ytd_payment = c_ytd_payment + $1::bigint * 0.01, \
                 c_payment_cnt = c_payment_cnt + 1 \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4 RETURNING c_credit",
                &[cents, &of.0, &of.1, &c],
            )?
            .get(0);
        if credit == "BC" {
            let note = format!("{c} {} {} {d} {w} {cents} | ", of.1, of.0);
            self.write(
                "UPDATE customer SET c_data = substr($1::text || c_data, 1, 500) \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                &[&note, &of.0, &of.1, &c],
            )?;
        }
        let data = format!("{warehouse}    {district}");
        self.write(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES ($1, $2, $3, $4, $5, localtimestamp, $6::bigint * 0.01, $7)",
            &[&c, &of.1, &of.0, d, w, cents, &data],
        )?;
        Ok(())
    }

    fn order_status(&mut self, input: &Input) -> Result<(), Error> {
        let Input { w, d, .. } = input;
        let c = self.customer(&input.customer, (*w, *d))?;
        self.row(
            "SELECT c_balance::float8, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            &[w, d, &c],
        )?;
        let order: i32 = self
            .row(
                "SELECT o_id, o_carrier_id, o_entry_d::text FROM orders \
                 WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
                &[w, d, &c],
            )?
            .get(0);
        self.rows(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d::text \
             FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            &[w, d, &order],
        )?;
        Ok(())
    }

    fn delivery(&mut self, input: &Input) -> Result<(), Error> {
        let w = &input.w;
        for d in 1..=DISTRICTS as i32 {
            let oldest = self.rows(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                &[w, &d],
            )?;
            let Some(oldest) = oldest.first() else { continue };
            let order: i32 = oldest.get(0);
            self.write(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
                &[w, &d, &order],
            )?;
            let c: i32 = self
                .row(
                    "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 \
                     AND o_id = $4 RETURNING o_c_id",
                    &[&input.carrier, w, &d, &order],
                )?
                .get(0);
            self.write(
                "UPDATE order_line SET ol_delivery_d = localtimestamp \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
                &[w, &d, &order],
            )?;
            let cents: i64 = self
                .row(
                    "SELECT (sum(ol_amount) * 100)::bigint FROM order_line \
                     WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
                    &[w, &d, &order],
                )?
                .get(0);
            self.write(
                "UPDATE customer SET c_balance = c_balance + $1::bigint * 0.01, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                &[&cents, w, &d, &c],
            )?;
        }
        Ok(())
    }

    fn stock_level(&mut self, input: &Input) -> Result<(), Error> {
        let Input { w, d, threshold, .. } = input;
        let next: i32 = self
            .row("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2", &[w, d])?
            .get(0);
        self.row(
            "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 \
             AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_w_id = $1 \
             AND s_i_id = ol_i_id AND s_quantity < $5",
            &[w, d, &(next - 20), &next, threshold],
        )?;
        Ok(())
    }
}

impl Terminal {
    pub(super) fn new(client: Client) -> Terminal {
        Terminal { client, prepared: HashMap::new() }
    }

    /// One try. `false`: it was to be rolled back, and was.
    pub(super) fn run(&mut self, input: &Input) -> Result<bool, Error> {
        let mut work = Work { txn: self.client.transaction()?, prepared: &mut self.prepared };
        let commits = work.run(input)?;
        match commits {
            true => work.txn.commit()?,
            false => work.txn.rollback()?,
        }
        Ok(commits)
    }
}
