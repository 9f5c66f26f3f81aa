//! The 22 queries with the specification's validation parameters.

use tpchgen::q_and_a::queries::query as template;

/// How many queries there are.
pub const QUERIES: usize = 22;

/// Values for `:1`, `:2`, ... of each query (clauses 2.4.x.3), and its number of rows at most.
const PARAMETERS: [(&[&str], Option<u32>); QUERIES] = [
    (&["90"], None),
    (&["15", "BRASS", "EUROPE"], Some(100)),
    (&["BUILDING", "1995-03-15"], Some(10)),
    (&["1993-07-01"], None),
    (&["ASIA", "1994-01-01"], None),
    (&["1994-01-01", "0.06", "24"], None),
    (&["FRANCE", "GERMANY"], None),
    (&["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"], None),
    (&["green"], None),
    (&["1993-10-01"], Some(20)),
    (&["GERMANY", "0.0001"], None),
    (&["MAIL", "SHIP", "1994-01-01"], None),
    (&["special", "requests"], None),
    (&["1995-09-01"], None),
    (&["1996-01-01"], None),
    (&["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"], None),
    (&["Brand#23", "MED BOX"], None),
    (&["300"], Some(100)),
    (&["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"], None),
    (&["forest", "1994-01-01", "CANADA"], None),
    (&["SAUDI ARABIA"], Some(100)),
    (&["13", "31", "23", "29", "30", "18", "17"], None),
];

/// The text of a query, numbered from 1.
///
/// # Panics
/// For a number that no query has.
pub fn query(number: usize, scale: f64) -> String {
    let (values, rows) = PARAMETERS[number - 1];
    let text = match number {
        // With a WITH instead of a view (clause 2.2.3.3 allows this variant).
        15 => FIFTEENTH,
        _ => template(number as i32).expect("there are 22 templates"),
    };
    // PostgreSQL has no precision of days.
    let mut text = text.trim().trim_end_matches(';').replace(" day (3)", " day");
    for (at, value) in values.iter().enumerate().rev() {
        let fraction = 0.0001 / scale;
        let value = if number == 11 && at == 1 { fraction.to_string() } else { value.to_string() };
        text = text.replace(&format!(":{}", at + 1), &value);
    }
    if let Some(rows) = rows {
        text.push_str(&format!("\nlimit {rows}"));
    }
    text
}

const FIFTEENTH: &str = "\
with revenue (supplier_no, total_revenue) as (
    select l_suppkey, sum(l_extendedprice * (1 - l_discount))
    from lineitem
    where l_shipdate >= date ':1' and l_shipdate < date ':1' + interval '3' month
    group by l_suppkey
)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from supplier, revenue
where s_suppkey = supplier_no
    and total_revenue = (select max(total_revenue) from revenue)
order by s_suppkey";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_its_value() {
        for number in 1..=QUERIES {
            let text = query(number, 0.1);
            let open = text.match_indices(':').any(|(at, _)| {
                text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == 's' || c == 'n')
            });
            assert!(!open, "{text}");
        }
        assert!(query(11, 0.1).contains("* 0.001"), "a fraction that depends on the scale");
        assert!(query(16, 1.0).contains("in (49, 14, 23, 45, 19, 3, 36, 9)"));
    }
}
