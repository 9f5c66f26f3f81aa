//! Five minutes with a hierarchy, step by step: `\tour` in the shell.

use crate::shell::Step;

/// What to try, under the addresses.
pub(super) const HINTS: &str = "
A customer, its orders and their lines lie next to each other on disk.
  \\tour                 walks through it, a step at a time
  \\d order_lines        columns, keys, and where it is interleaved
  \\?                    all commands of this shell
";

/// The same of a cluster.
pub(super) const CLUSTER_HINTS: &str =
    "  \\nodes \\kill 2 \\start 2   the nodes: end one as kill -9 does, start it again
";

const STEPS: &[Step] = &[
    Step {
        text:
            "Three tables, one in the other: a customer with all that belongs to him is one piece of
key space.",
        run: "SHOW INTERLEAVE TREE;",
    },
    Step {
        text: "So a customer with all orders and lines is read by one scan, whatever joins them.",
        run: "SELECT o.order_no, o.status, sum(l.quantity * l.price) AS total
FROM customers c JOIN orders o USING (id) JOIN order_lines l USING (id, order_no)
WHERE c.id = 8 GROUP BY o.order_no, o.status ORDER BY total DESC LIMIT 3;",
    },
    Step {
        text: "EXPLAIN says so: one pass over the family.",
        run: "EXPLAIN SELECT * FROM customers JOIN orders USING (id)
JOIN order_lines USING (id, order_no) WHERE id = 8;",
    },
    Step {
        text: "As JSON, children in their parents, in one statement:",
        run: "SELECT jsonb_pretty(jsonb_build_object('customer', c.name, 'orders',
    (SELECT jsonb_agg(jsonb_build_object('no', o.order_no, 'status', o.status))
     FROM (SELECT * FROM orders WHERE id = c.id ORDER BY order_no LIMIT 2) o)))
FROM customers c WHERE c.id = 8;",
    },
    Step {
        text: "Erasing a customer is one range tombstone, however much is below. EXPLAIN says so.",
        run: "EXPLAIN DELETE FROM customers WHERE id = 7;",
    },
    Step {
        text: "Gone, with 20 orders, 100 lines and all index entries:",
        run: "DELETE FROM customers WHERE id = 7;
SELECT count(*) AS lines_left FROM order_lines WHERE id = 7;",
    },
    Step {
        text: "The past can be read for four hours: the lines as they were before.",
        run: "SELECT count(*) AS lines_before FROM order_lines
AS OF SYSTEM TIME '{before}' WHERE id = 7;",
    },
    Step {
        text: "What the statements of this tour have cost, from statistics that each node keeps:",
        run: "SELECT left(query, 50) AS query, calls, round(mean_exec_time::numeric, 2) AS ms, rows
FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 5;",
    },
];

const CLUSTER_STEPS: &[Step] = &[
    Step {
        text: "A cluster parts its keys into ranges, in front of families, each on several nodes.",
        run: "ALTER TABLE customers SPLIT AT VALUES (50);
SELECT range_id, start_key, end_key, replicas, leaseholder FROM braid_ranges;",
    },
    Step {
        text: "One node ends as by kill -9. The others are a majority, and nothing is lost.",
        run: "\\kill 3
INSERT INTO customers VALUES (101, 'While one is away', 'Graz');
SELECT count(*) FROM customers;",
    },
    Step { text: "And it comes back.", run: "\\start 3\n\\nodes" },
];

/// All steps.
pub(super) fn steps(cluster: bool) -> Vec<Step> {
    let more: &[Step] = if cluster { CLUSTER_STEPS } else { &[] };
    STEPS.iter().chain(more).map(|step| Step { ..*step }).collect()
}
