//! Keys that a join has told a scan, one bit each: whether a row has one of them is one look.
//!
//! ```text
//!   o_orderkey IN (3, 7, 12), >= 3, <= 12        least 3, bits 1000 1000 01..
//! ```
//! Whole numbers only, and only if they lie close together: else the general set is as small.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, PrimitiveArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type,
};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};

/// So many bits for each key at most: a general set takes as much.
const BITS_FOR_A_KEY: u64 = 256;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct KeySet {
    /// Which column of the rows.
    column: usize,
    least: i64,
    bits: Box<[u64]>,
}

/// What a condition says about one column.
#[derive(Default)]
struct Said<'a> {
    column: Option<usize>,
    list: Option<&'a InListExpr>,
    /// Bounds, themselves included.
    low: Option<i64>,
    high: Option<i64>,
}

impl<'a> Said<'a> {
    /// Takes in a condition; `None` if it says something else.
    fn add(&mut self, condition: &'a Arc<dyn PhysicalExpr>) -> Option<()> {
        if let Some(list) = condition.downcast_ref::<InListExpr>() {
            self.about(list.expr())?;
            return (!list.negated() && self.list.replace(list).is_none()).then_some(());
        }
        let both = condition.downcast_ref::<BinaryExpr>()?;
        if *both.op() == Operator::And {
            self.add(both.left())?;
            return self.add(both.right());
        }
        self.about(both.left())?;
        let bound = whole(both.right())?;
        match both.op() {
            Operator::GtEq => self.low = self.low.max(Some(bound)),
            Operator::LtEq => self.high = Some(self.high.map_or(bound, |high| high.min(bound))),
            _ => return None,
        }
        Some(())
    }

    fn about(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<()> {
        let column = expr.downcast_ref::<Column>()?.index();
        (*self.column.get_or_insert(column) == column).then_some(())
    }
}

/// A literal that is a whole number.
fn whole(expr: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int16(n) => n.map(i64::from),
        ScalarValue::Int32(n) | ScalarValue::Date32(n) => n.map(i64::from),
        ScalarValue::Int64(n) => *n,
        _ => None,
    }
}

impl KeySet {
    /// The set that a condition is; `None` for other conditions, and for keys far from each other.
    pub(super) fn of(condition: &Arc<dyn PhysicalExpr>) -> Option<KeySet> {
        let mut said = Said::default();
        said.add(condition)?;
        let (low, high) = (said.low.unwrap_or(i64::MIN), said.high.unwrap_or(i64::MAX));
        let keys: Option<Vec<i64>> = said.list?.list().iter().map(whole).collect();
        let mut keys = keys?;
        keys.retain(|key| (low..=high).contains(key));
        let (least, most) = (*keys.iter().min()?, *keys.iter().max()?);
        let distance = most.abs_diff(least);
        if distance / BITS_FOR_A_KEY > keys.len() as u64 {
            return None;
        }
        let mut bits = vec![0_u64; distance as usize / 64 + 1].into_boxed_slice();
        for key in keys {
            let at = key.abs_diff(least);
            bits[at as usize / 64] |= 1 << (at % 64);
        }
        Some(KeySet { column: said.column?, least, bits })
    }

    #[inline]
    fn contains(&self, key: i64) -> bool {
        let at = key.wrapping_sub(self.least) as u64;
        self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// The rows whose key is in the set; `None` if they have keys of another type.
    pub(super) fn passing(&self, rows: &RecordBatch) -> Option<BooleanArray> {
        let keys = rows.column(self.column);
        Some(match keys.data_type() {
            DataType::Int16 => self.among(keys.as_primitive::<Int16Type>()),
            DataType::Int32 => self.among(keys.as_primitive::<Int32Type>()),
            DataType::Date32 => self.among(keys.as_primitive::<Date32Type>()),
            DataType::Int64 => self.among(keys.as_primitive::<Int64Type>()),
            _ => return None,
        })
    }

    fn among<T: ArrowPrimitiveType>(&self, keys: &PrimitiveArray<T>) -> BooleanArray
    where
        T::Native: Into<i64>,
    {
        let values = keys.values();
        let found =
            BooleanBuffer::collect_bool(values.len(), |row| self.contains(values[row].into()));
        let found = match keys.nulls() {
            Some(nulls) => &found & nulls.inner(),
            None => found,
        };
        BooleanArray::new(found, None)
    }
}

#[cfg(test)]
mod tests {
    use braid_env::random::Random;
    use datafusion::arrow::array::{Int32Array, Int64Array};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, in_list, lit};

    use super::*;

    fn schema() -> Schema {
        let field = |name, ty| Field::new(name, ty, true);
        Schema::new(vec![field("a", DataType::Int32), field("b", DataType::Int64)])
    }

    fn is_in(column: &str, keys: Vec<ScalarValue>, negated: bool) -> Arc<dyn PhysicalExpr> {
        let (schema, keys) = (schema(), keys.into_iter().map(lit).collect());
        in_list(col(column, &schema).unwrap(), keys, &negated, &schema).unwrap()
    }

    fn and(
        (column, op, bound): (&str, Operator, ScalarValue),
        other: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        let schema = schema();
        let bound = binary(col(column, &schema).unwrap(), op, lit(bound), &schema).unwrap();
        binary(bound, Operator::And, other, &schema).unwrap()
    }

    #[test]
    fn it_holds_what_the_condition_holds() {
        for seed in 0..200 {
            let random = &mut Random::seeded(seed);
            let least = [0, i64::MIN, i64::MAX - 5_000, -70][random.below(4) as usize];
            let value = |random: &mut Random| least + random.below(5_000) as i64;
            let keys: Vec<i64> = (0..random.between(20, 200)).map(|_| value(random)).collect();
            let list = keys.iter().map(|key| ScalarValue::Int64(Some(*key))).collect();
            let mut condition = is_in("b", list, false);
            if random.chance(1, 2) {
                let bound = ScalarValue::Int64(Some(value(random)));
                let op = [Operator::GtEq, Operator::LtEq][random.below(2) as usize];
                condition = and(("b", op, bound), condition);
            }
            let values = (0..300).map(|n| match n % 7 {
                0 => None,
                1..4 => Some(keys[random.below(keys.len() as u64) as usize]),
                4 => Some(random.next_u64() as i64),
                _ => Some(value(random)),
            });
            let values: Int64Array = values.collect();
            let others = Int32Array::from(vec![1; values.len()]);
            let columns: Vec<Arc<dyn Array>> = vec![Arc::new(others), Arc::new(values)];
            let rows = RecordBatch::try_new(Arc::new(schema()), columns).unwrap();
            let expected = condition.evaluate(&rows).unwrap().into_array(rows.num_rows()).unwrap();
            let expected: Vec<bool> =
                expected.as_boolean().iter().map(|is_true| is_true == Some(true)).collect();
            let Some(set) = KeySet::of(&condition) else {
                assert!(!expected.contains(&true), "seed {seed}: no key is left");
                continue;
            };
            let found = set.passing(&rows).unwrap();
            assert_eq!(found.values().iter().collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }

    #[test]
    fn other_conditions_are_none() {
        let int = |n: i32| ScalarValue::Int32(Some(n));
        let some = || is_in("a", vec![int(3), int(9)], false);
        assert!(KeySet::of(&some()).is_some());
        assert!(KeySet::of(&is_in("a", vec![int(3), int(9)], true)).is_none());
        assert!(KeySet::of(&is_in("a", vec![int(3), int(1 << 30)], false)).is_none(), "far away");
        let of_b = ScalarValue::Int64(Some(1));
        assert!(KeySet::of(&and(("b", Operator::GtEq, of_b), some())).is_none(), "two columns");
        assert!(KeySet::of(&and(("a", Operator::NotEq, int(3)), some())).is_none());
        let schema = schema();
        let twice = binary(some(), Operator::And, some(), &schema).unwrap();
        assert!(KeySet::of(&twice).is_none());
    }
}
