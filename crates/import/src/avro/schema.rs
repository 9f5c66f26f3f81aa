//! What a file says its rows are made of.

use std::collections::HashMap;

use serde_json::Value as Json;

/// Schemas may nest as deep as this.
const DEPTH_MAX: usize = 64;

/// A type of the file. Named types are kept once and referred to by number, so that they may
/// contain themselves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Schema {
    Null,
    Boolean,
    Int(Meaning),
    Long(Meaning),
    Float,
    Double,
    Bytes(Meaning),
    Text(Meaning),
    Array(Box<Schema>),
    Map(Box<Schema>),
    Union(Vec<Schema>),
    /// A record, an enum or a fixed.
    Named(usize),
}

/// What the numbers or bytes of a type mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Plain,
    Decimal(i32),
    Uuid,
    Date,
    Duration,
    /// Of so many in a second.
    Time(i64),
    /// Of so many in a second; an instant or a local time.
    Timestamp(i64, bool),
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Named {
    Record(Vec<(String, Schema)>),
    Enum(Vec<String>),
    Fixed(usize, Meaning),
    /// Of a name that was used and is being read.
    Open,
}

/// All of a file's types.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    pub(super) named: Vec<Named>,
    by_name: HashMap<String, usize>,
}

impl Schemas {
    /// Reads the schema of a file: the fields of its rows.
    pub(super) fn read(text: &str) -> Result<(Schemas, Vec<(String, Schema)>), String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("its schema: {e}"))?;
        let mut out = Schemas::default();
        let root = out.schema(&json, "", 0)?;
        match root {
            Schema::Named(n) => match &out.named[n] {
                Named::Record(fields) => {
                    let fields = fields.clone();
                    Ok((out, fields))
                }
                _ => Err("its rows are no records".into()),
            },
            _ => Err("its rows are no records".into()),
        }
    }

    fn schema(&mut self, json: &Json, space: &str, depth: usize) -> Result<Schema, String> {
        if depth > DEPTH_MAX {
            return Err("its schema is nested too deeply".into());
        }
        match json {
            Json::String(name) => self.by_word(name, &Json::Null, space),
            Json::Array(branches) if !branches.is_empty() => {
                let branches = branches.iter().map(|b| self.schema(b, space, depth + 1));
                Ok(Schema::Union(branches.collect::<Result<_, _>>()?))
            }
            Json::Object(_) => self.complex(json, space, depth),
            other => Err(format!("its schema has a type {other}")),
        }
    }

    fn complex(&mut self, json: &Json, space: &str, depth: usize) -> Result<Schema, String> {
        let word = match &json["type"] {
            Json::String(word) => word.as_str(),
            // {"type": {"type": ..}} says no more than what is inside.
            inner => return self.schema(inner, space, depth + 1),
        };
        match word {
            "array" => Ok(Schema::Array(self.schema(&json["items"], space, depth + 1)?.into())),
            "map" => Ok(Schema::Map(self.schema(&json["values"], space, depth + 1)?.into())),
            "record" | "error" | "enum" | "fixed" => self.named(word, json, space, depth),
            word => self.by_word(word, json, space),
        }
    }

    fn by_word(&self, word: &str, json: &Json, space: &str) -> Result<Schema, String> {
        let meaning = meaning(json);
        Ok(match word {
            "null" => Schema::Null,
            "boolean" => Schema::Boolean,
            "int" => Schema::Int(meaning),
            "long" => Schema::Long(meaning),
            "float" => Schema::Float,
            "double" => Schema::Double,
            "bytes" => Schema::Bytes(meaning),
            "string" => Schema::Text(meaning),
            name => {
                let known = self.by_name.get(&full_name(name, space));
                let known = known.or_else(|| self.by_name.get(name));
                Schema::Named(*known.ok_or_else(|| format!("its schema has no type \"{name}\""))?)
            }
        })
    }

    fn named(
        &mut self,
        word: &str,
        json: &Json,
        space: &str,
        depth: usize,
    ) -> Result<Schema, String> {
        let name = json["name"].as_str().ok_or("its schema has a type without a name")?;
        let space = json["namespace"].as_str().unwrap_or(space);
        let name = full_name(name, space);
        let space = name.rsplit_once('.').map_or("", |(space, _)| space).to_string();
        let number = self.named.len();
        self.named.push(Named::Open);
        if self.by_name.insert(name.clone(), number).is_some() {
            return Err(format!("its schema has two types \"{name}\""));
        }
        let list = |key: &str| json[key].as_array().ok_or(format!("type \"{name}\" has no {key}"));
        let made = match word {
            "enum" => {
                let symbols = list("symbols")?.iter();
                Named::Enum(symbols.filter_map(|s| s.as_str().map(String::from)).collect())
            }
            "fixed" => {
                let size = json["size"].as_u64().and_then(|n| usize::try_from(n).ok());
                let size = size.ok_or_else(|| format!("type \"{name}\" has no size"))?;
                Named::Fixed(size, meaning(json))
            }
            _ => {
                let mut fields = Vec::new();
                for field in list("fields")? {
                    let own = field["name"].as_str();
                    let own = own.ok_or_else(|| format!("a field of \"{name}\" has no name"))?;
                    let schema = self.schema(&field["type"], &space, depth + 1)?;
                    fields.push((own.to_string(), schema));
                }
                Named::Record(fields)
            }
        };
        self.named[number] = made;
        Ok(Schema::Named(number))
    }
}

fn full_name(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() { name.into() } else { format!("{space}.{name}") }
}

fn meaning(json: &Json) -> Meaning {
    let scale = || json["scale"].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    match json["logicalType"].as_str() {
        Some("decimal") => Meaning::Decimal(scale()),
        Some("uuid") => Meaning::Uuid,
        Some("date") => Meaning::Date,
        Some("duration") => Meaning::Duration,
        Some("time-millis") => Meaning::Time(1_000),
        Some("time-micros") => Meaning::Time(1_000_000),
        Some("timestamp-millis") => Meaning::Timestamp(1_000, true),
        Some("timestamp-micros") => Meaning::Timestamp(1_000_000, true),
        Some("timestamp-nanos") => Meaning::Timestamp(1_000_000_000, true),
        Some("local-timestamp-millis") => Meaning::Timestamp(1_000, false),
        Some("local-timestamp-micros") => Meaning::Timestamp(1_000_000, false),
        Some("local-timestamp-nanos") => Meaning::Timestamp(1_000_000_000, false),
        // What nobody knows is what it is without its meaning.
        _ => Meaning::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_their_space_and_may_contain_themselves() {
        let text = r#"{"type": "record", "name": "a.R", "fields": [
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "again", "type": ["null", "F"]},
            {"name": "next", "type": ["null", "a.R"]}]}"#;
        let (schemas, fields) = Schemas::read(text).unwrap();
        assert_eq!(schemas.named[1], Named::Fixed(2, Meaning::Plain));
        assert_eq!(fields[1].1, Schema::Union(vec![Schema::Null, Schema::Named(1)]));
        assert_eq!(fields[2].1, Schema::Union(vec![Schema::Null, Schema::Named(0)]));
        for bad in ["7", "\"int\"", "[]", "{\"type\":\"nothing\"}", "{\"type\":\"enum\"}", "{"] {
            assert!(Schemas::read(bad).is_err(), "{bad}");
        }
    }
}
