//! What a composite type is.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serializer};

use crate::{
    CastContext, Datum, RecordValue, SqlError, SqlResult, SqlState, SqlType, Style, cast,
    cast_exists, shown_type_name,
};

/// One field of a composite type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompositeField {
    /// Name.
    pub name: Arc<str>,
    /// Type.
    pub ty: SqlType,
    /// Oid of the declared type: of a domain its own, and not that of what its values are kept as.
    pub oid: u32,
}

impl CompositeField {
    /// A field that is declared with the type of its values.
    pub fn new(name: &str, ty: SqlType) -> CompositeField {
        let oid = ty.oid();
        CompositeField { name: name.into(), ty, oid }
    }
}

/// A composite type: its names and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CompositeType {
    /// Oid; that of its row in `pg_class`, too.
    pub oid: u32,
    /// Oid of its arrays, 0 if it has none.
    pub array_oid: u32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Its fields in their order.
    pub fields: Vec<CompositeField>,
    names: Arc<[Arc<str>]>,
}

impl CompositeType {
    /// A type with these fields.
    pub fn new(
        (oid, array_oid): (u32, u32),
        (schema, name): (String, String),
        fields: Vec<CompositeField>,
    ) -> CompositeType {
        let names = fields.iter().map(|f| f.name.clone()).collect();
        CompositeType { oid, array_oid, schema, name, fields, names }
    }

    /// `record`, of which it is known what its fields are called.
    pub fn record(columns: &[(String, SqlType)]) -> CompositeType {
        let field = |(name, ty): &(String, SqlType)| CompositeField::new(name, ty.clone());
        let oids = (SqlType::Record.oid(), SqlType::Record.array_oid());
        let name = ("pg_catalog".to_string(), "record".to_string());
        CompositeType::new(oids, name, columns.iter().map(field).collect())
    }

    /// Only the oid: what a descriptor says before the catalog is known.
    pub fn unresolved(oid: u32) -> CompositeType {
        CompositeType { oid, ..CompositeType::default() }
    }

    /// The name as messages and `format_type` print it.
    pub fn shown_name(&self) -> String {
        shown_type_name(&self.schema, &self.name)
    }

    /// Names of the fields, as values carry them.
    pub fn names(&self) -> &Arc<[Arc<str>]> {
        &self.names
    }

    /// The place of a field.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| *f.name == *name)
    }

    /// A value of this type; there must be as many fields as the type has.
    pub fn value(&self, fields: Vec<Datum>) -> Datum {
        debug_assert_eq!(fields.len(), self.fields.len(), "fields of {}", self.name);
        Datum::Record(Arc::new(RecordValue { names: Some(self.names.clone()), fields }))
    }

    /// The value with the names, and inside of arrays the types, that this type has now: what comes
    /// from where only the fields were kept.
    pub fn known(&self, record: &RecordValue) -> Datum {
        let fields = record.iter().zip(&self.fields).map(|(v, f)| f.ty.known(v)).collect();
        self.value(fields)
    }

    /// Whether values of both types compare field by field.
    pub fn is_like(&self, other: &CompositeType) -> bool {
        let (own, others) = (&self.fields, &other.fields);
        own.len() == others.len() && own.iter().zip(others).all(|(a, b)| a.ty.same_base(&b.ty))
    }

    /// Whether a row of so many fields of these types becomes one of this type; the context is the
    /// one in which its fields are converted.
    ///
    /// # Errors
    /// 42846, with a detail that names what does not fit.
    pub fn check_row(&self, types: &[&SqlType], context: CastContext) -> SqlResult<()> {
        let wrong = |detail: String| {
            let text = format!("cannot cast type record to {}", self.shown_name());
            Err(SqlError::new(SqlState::CANNOT_COERCE, text).with_detail(detail))
        };
        if types.len() < self.fields.len() {
            return wrong("Input has too few columns.".into());
        }
        if types.len() > self.fields.len() {
            return wrong("Input has too many columns.".into());
        }
        for (at, (from, field)) in types.iter().zip(&self.fields).enumerate() {
            if cast_exists(from, &field.ty).is_none_or(|least| least > context) {
                let (from, to) = (from.base_name(), field.ty.base_name());
                return wrong(format!("Cannot cast type {from} to {to} in column {}.", at + 1));
            }
        }
        Ok(())
    }

    /// The value that a row of an unknown type is as one of this type.
    pub(crate) fn of_row(
        &self,
        row: &RecordValue,
        context: CastContext,
        style: &Style,
    ) -> SqlResult<Datum> {
        let types: Vec<SqlType> = row.iter().map(Datum::implied_type).collect();
        // A row from elsewhere has forgotten what its texts were.
        self.check_row(&types.iter().collect::<Vec<_>>(), CastContext::Explicit)?;
        let mut fields = Vec::with_capacity(self.fields.len());
        for ((value, from), field) in row.iter().zip(&types).zip(&self.fields) {
            fields.push(cast(value, from, &field.ty, context, style)?);
        }
        Ok(self.value(fields))
    }

    /// The value whose fields have these texts, `None` for NULL.
    pub(crate) fn of_texts(&self, texts: Vec<Option<String>>, style: &Style) -> SqlResult<Datum> {
        let mut fields = Vec::with_capacity(texts.len());
        for (text, field) in texts.into_iter().zip(&self.fields) {
            fields.push(match text {
                None => Datum::Null,
                Some(text) => Datum::parse(&text, &field.ty, style)?,
            });
        }
        Ok(self.value(fields))
    }
}

impl SqlType {
    /// A value of this type with the names that its rows have now.
    pub fn known(&self, value: &Datum) -> Datum {
        match (self, value) {
            (SqlType::Composite(ty), Datum::Record(row)) if row.len() == ty.fields.len() => {
                ty.known(row)
            }
            (SqlType::Array(element), Datum::Array(array)) if element.is_row() => {
                let items = array.items.iter().map(|item| element.known(item)).collect();
                Datum::Array(Arc::new(array.like((**element).clone(), items)))
            }
            _ => value.clone(),
        }
    }

    /// The types of what values consist of: elements, fields.
    pub fn parts(&self) -> impl Iterator<Item = &SqlType> {
        let fields = match self {
            SqlType::Composite(ty) => ty.fields.as_slice(),
            _ => &[],
        };
        self.element().into_iter().chain(fields.iter().map(|f| &f.ty))
    }

    /// Whether values are rows: `record`, and composite types.
    pub fn is_row(&self) -> bool {
        matches!(self, SqlType::Record | SqlType::Composite(_))
    }
}

/// A composite type in a descriptor: its oid; the catalog has the rest.
pub(crate) mod by_oid {
    use super::{Arc, CompositeType, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        ty: &Arc<CompositeType>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.serialize_u32(ty.oid)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        d: D,
    ) -> Result<Arc<CompositeType>, D::Error> {
        u32::deserialize(d).map(|oid| Arc::new(CompositeType::unresolved(oid)))
    }
}
