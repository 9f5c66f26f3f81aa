//! What ANALYZE leaves in the store about a table, under its system key, as JSON.
//!
//! It belongs to a table's id and generation, and each column in it to the column's id and type: a
//! table that was truncated, or a column that is another now, has none. Values are written as in
//! rows, in hexadecimal digits.

use std::sync::Arc;

use braid_catalog::Table;
use braid_types::{ArrayValue, Datum, EnumValue, SqlType};
use serde_json::{Value, json};

use crate::estimate::Summary;
use crate::statistics::{ColumnStatistics, FamilySize, TableStatistics};
use braid_rows::row_codec::{decode_payload, encode_payload};

/// What is stored about a table.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its id.
    pub table: u32,
    /// The generation of its rows.
    pub generation: u32,
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// Whether nobody had asked for it.
    pub automatic: bool,
    /// Number of rows.
    pub rows: f64,
    /// Average bytes of a row's values.
    pub row_bytes: f64,
    /// Stored bytes, everything around counted.
    pub bytes: u64,
    /// With the id of the parent.
    pub family: Option<(u32, FamilySize)>,
    /// Of those columns that were analyzed.
    pub columns: Vec<ColumnRecord>,
}

/// What is stored about a column.
#[derive(Clone, Debug)]
pub struct ColumnRecord {
    /// Its id in the table.
    pub id: u32,
    /// The type that it had.
    pub ty: SqlType,
    /// What the sample said.
    pub summary: Summary,
}

impl Record {
    /// Whether it is about these rows.
    pub fn is_of(&self, table: &Table) -> bool {
        self.table == table.id && self.generation == table.generation
    }

    /// For planners, by the columns that the table has now.
    pub fn shaped(&self, table: &Table) -> TableStatistics {
        let column = |c: &braid_catalog::Column| {
            let is_of = |r: &&ColumnRecord| {
                r.id == c.id && r.ty.same_base(&c.ty) && r.ty.typmod() == c.ty.typmod()
            };
            let found = self.columns.iter().find(is_of)?;
            Some(statistics_of(&found.summary.as_type(&c.ty), self.rows))
        };
        let parent = table.interleave.as_ref().map(|i| i.parent);
        TableStatistics {
            rows: self.rows,
            row_bytes: self.row_bytes,
            columns: table.columns.iter().map(column).collect(),
            family: self.family.filter(|(id, _)| Some(*id) == parent).map(|(_, size)| size),
        }
    }

    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let family = self.family.map(|(id, size)| json!([id, size.average, size.most]));
        let columns: Vec<Value> = self.columns.iter().map(ColumnRecord::encode).collect();
        let value = json!({
            "table": self.table, "generation": self.generation, "at": self.at_us,
            "automatic": self.automatic, "rows": self.rows, "row_bytes": self.row_bytes,
            "bytes": self.bytes, "family": family, "columns": columns,
        });
        value.to_string().into_bytes()
    }

    /// `None`: damaged.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let family = match &value["family"] {
            Value::Null => None,
            size => {
                let (average, most) = (size[1].as_f64()?, size[2].as_f64()?);
                Some((id(&size[0])?, FamilySize { average, most }))
            }
        };
        let columns = value["columns"].as_array()?;
        Some(Record {
            table: id(&value["table"])?,
            generation: id(&value["generation"])?,
            at_us: value["at"].as_u64()?,
            automatic: value["automatic"].as_bool()?,
            rows: value["rows"].as_f64()?,
            row_bytes: value["row_bytes"].as_f64()?,
            bytes: value["bytes"].as_u64()?,
            family,
            columns: columns.iter().map(ColumnRecord::decode).collect::<Option<_>>()?,
        })
    }
}

impl ColumnRecord {
    fn encode(&self) -> Value {
        let Summary { null_fraction, width, distinct, common, histogram, correlation } =
            &self.summary;
        let common: Vec<Value> =
            common.iter().map(|(value, part)| json!([digits(value), part])).collect();
        let histogram: Vec<String> = histogram.iter().map(digits).collect();
        json!({
            "id": self.id, "type": self.ty, "nulls": null_fraction, "width": width,
            "distinct": distinct, "common": common, "histogram": histogram,
            "correlation": correlation,
        })
    }

    fn decode(value: &Value) -> Option<ColumnRecord> {
        let ty: SqlType = serde_json::from_value(value["type"].clone()).ok()?;
        let common = |entry: &Value| Some((datum(&entry[0], &ty)?, entry[1].as_f64()?));
        let summary = Summary {
            null_fraction: value["nulls"].as_f64()?,
            width: value["width"].as_f64()?,
            distinct: value["distinct"].as_f64()?,
            common: value["common"].as_array()?.iter().map(common).collect::<Option<_>>()?,
            histogram: {
                let bounds = value["histogram"].as_array()?;
                bounds.iter().map(|bound| datum(bound, &ty)).collect::<Option<_>>()?
            },
            correlation: value["correlation"].as_f64(),
        };
        Some(ColumnRecord { id: id(&value["id"])?, ty, summary })
    }
}

impl Summary {
    /// The same about a column of this type. A record knows of an enum type no more than its oid;
    /// the column's type has the labels.
    fn as_type(&self, ty: &SqlType) -> Summary {
        let mut out = self.clone();
        let common = out.common.iter_mut().map(|(value, _)| value);
        common.chain(&mut out.histogram).for_each(|value| *value = of_type(value, ty));
        out
    }
}

fn of_type(value: &Datum, ty: &SqlType) -> Datum {
    match (value, ty) {
        (Datum::Enum(v), SqlType::Enum(ty)) => {
            Datum::Enum(EnumValue { ty: ty.clone(), place: v.place })
        }
        (Datum::Array(array), SqlType::Array(element)) => {
            let items = array.items.iter().map(|item| of_type(item, element)).collect();
            Datum::Array(Arc::new(ArrayValue::list((**element).clone(), items)))
        }
        (other, _) => other.clone(),
    }
}

/// For planners: numbers of values, not parts of the rows.
pub(crate) fn statistics_of(summary: &Summary, rows: f64) -> ColumnStatistics {
    let Summary { null_fraction, width, distinct, common, histogram, correlation } =
        summary.clone();
    let distinct = if distinct < 0.0 { -distinct * rows } else { distinct };
    ColumnStatistics { null_fraction, distinct, width, common, histogram, correlation }
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok())
}

fn digits(value: &Datum) -> String {
    let mut payload = Vec::new();
    encode_payload(&mut payload, value);
    payload.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn datum(value: &Value, ty: &SqlType) -> Option<Datum> {
    let digits = value.as_str()?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let payload: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?;
    decode_payload(&payload, ty).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let numeric = |text: &str| Datum::Numeric(Arc::new(text.parse().unwrap()));
        let summary = Summary {
            null_fraction: 0.25,
            width: 5.0,
            distinct: -0.5,
            common: vec![(numeric("1.50"), 0.3)],
            histogram: vec![numeric("-2"), numeric("0.001"), Datum::NumericNan],
            correlation: Some(-0.125),
        };
        Record {
            table: 20,
            generation: 3,
            at_us: 1_700_000_000_000_000,
            automatic: true,
            rows: 1000.0,
            row_bytes: 40.5,
            bytes: 12_345,
            family: Some((19, FamilySize { average: 2.5, most: 9.0 })),
            columns: vec![ColumnRecord { id: 4, ty: SqlType::Numeric(Some((9, 2))), summary }],
        }
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let record = record();
        let back = Record::decode(&record.encode()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{record:?}"));
        let none = Record { family: None, columns: vec![], ..record };
        let back = Record::decode(&none.encode()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{none:?}"));
    }

    #[test]
    fn what_is_damaged_is_nothing() {
        assert!(Record::decode(b"{}").is_none());
        let text = String::from_utf8(record().encode()).unwrap();
        assert!(Record::decode(text.replace("\"type\"", "\"kind\"").as_bytes()).is_none());
        assert!(Record::decode(&text.as_bytes()[..text.len() - 1]).is_none());
    }
}
