//! CREATE TYPE .. AS RANGE.
//!
//! ```text
//!   CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi)
//!     floatrange  floatrange[]  floatmultirange  floatmultirange[]     four types of one object
//! ```
//! Operator classes and the function of differences only tell how indexes are built elsewhere: they
//! must be there and fit, and change nothing here.

use braid_catalog::{RangeOf, TypeKind, UserType, constraint_name};
use braid_scalar::Volatility;
use braid_types::{MAX_IDENTIFIER, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{self, UserDefinedTypeRangeOption};

use super::user_type::{self, refuse_taken};
use crate::ddl::{Change, parts};
use braid_parser::Name;

/// What a statement says of a new type.
#[derive(Default)]
struct Options<'a> {
    subtype: Option<&'a ast::DataType>,
    class: Option<&'a ast::ObjectName>,
    collation: Option<&'a ast::ObjectName>,
    canonical: Option<&'a ast::ObjectName>,
    difference: Option<&'a ast::ObjectName>,
    multirange: Option<&'a ast::ObjectName>,
}

fn once<'a, T>(place: &mut Option<&'a T>, value: &'a T) -> SqlResult<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(SqlError::syntax("conflicting or redundant options")),
    }
}

impl Options<'_> {
    fn of(options: &[UserDefinedTypeRangeOption]) -> SqlResult<Options<'_>> {
        use UserDefinedTypeRangeOption as O;
        let mut out = Options::default();
        for option in options {
            match option {
                O::Subtype(ty) => once(&mut out.subtype, ty)?,
                O::SubtypeOpClass(name) => once(&mut out.class, name)?,
                O::Collation(name) => once(&mut out.collation, name)?,
                O::Canonical(name) => once(&mut out.canonical, name)?,
                O::SubtypeDiff(name) => once(&mut out.difference, name)?,
                O::MultirangeTypeName(name) => once(&mut out.multirange, name)?,
            }
        }
        Ok(out)
    }
}

/// Makes the type of this name, which nothing else has.
pub(super) fn create(
    c: &mut Change,
    (schema, name): (u32, String),
    options: &[UserDefinedTypeRangeOption],
) -> SqlResult<()> {
    let options = Options::of(options)?;
    let Some(subtype) = options.subtype else {
        return Err(SqlError::syntax("type attribute \"subtype\" is required"));
    };
    let subtype = bounds(c, subtype)?;
    check_class(&subtype, options.class)?;
    check_collation(c, &subtype, options.collation)?;
    if options.canonical.is_some() {
        // Nor are there shell types here.
        return Err(SqlError::new(
            SqlState("42P17"),
            "cannot specify a canonical function without a pre-created shell type",
        )
        .with_hint(
            "Create the type as a shell type, then create its canonicalization function, then do a \
             full CREATE TYPE.",
        ));
    }
    if let Some(function) = options.difference {
        check_difference(c, &parts(function), &subtype)?;
    }
    let multirange = multirange_name(c, (schema, &name), options.multirange)?;
    let id = c.ctx.db.new_ids(4)?;
    let of = RangeOf { subtype, multirange, multirange_id: id + 2, multirange_array: id + 3 };
    let kind = TypeKind::Range(Box::new(of));
    c.catalog.put_type(UserType { id, schema, name, array: id + 1, kind, comment: None });
    Ok(())
}

/// The type of the bounds.
fn bounds(c: &Change, declared: &ast::DataType) -> SqlResult<SqlType> {
    let ty = c.ctx.type_of(declared)?.base();
    let types = c.ctx.no_params();
    let refinement = braid_scalar::refinement_of(declared, types.named_types())?;
    let of_values = ty.element().unwrap_or(&ty);
    let user = matches!(of_values, SqlType::Enum(_) | SqlType::Composite(_));
    if user || of_values.made_range().is_some() || refinement.domain.is_some() {
        return Err(SqlError::unsupported(format!("a range of values of type {declared}"))
            .with_hint("Ranges are over types that are built in."));
    }
    match ty {
        SqlType::Record | SqlType::Void | SqlType::Unknown => {
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, format!("range subtype cannot be {ty}")))
        }
        SqlType::OidVector => Err(SqlError::unsupported("a range of values of type oidvector")),
        ty => Ok(ty),
    }
}

/// Refuses a type without an order, and an order that is not the only one that the type has here.
fn check_class(subtype: &SqlType, class: Option<&ast::ObjectName>) -> SqlResult<()> {
    let Some(class) = class else {
        if subtype.is_comparable() && *subtype != SqlType::Int2Vector {
            return Ok(());
        }
        let text = format!(
            "data type {subtype} has no default operator class for access method \"btree\""
        );
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text).with_hint(
            "You must specify an operator class for the range type or define a default operator \
             class for the subtype.",
        ));
    };
    let class = parts(class);
    let name = class.strip_prefix(&["pg_catalog".to_string()]).unwrap_or(&class).join(".");
    let own = match subtype {
        SqlType::Array(_) => "array".to_string(),
        SqlType::Range(_) => "range".to_string(),
        SqlType::Multirange(_) => "multirange".to_string(),
        SqlType::Cidr => "inet".to_string(),
        SqlType::Varchar(_) => "text".to_string(),
        other => other.internal_name(),
    };
    // The order of patterns is that of bytes, which is the order here.
    let of_bytes = subtype.is_text_like() && name == format!("{own}_pattern_ops");
    if name == format!("{own}_ops")
        || name == format!("{}_ops", subtype.internal_name())
        || of_bytes
    {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("operator class \"{name}\" for a range of {subtype}"))
        .with_hint(format!("{own}_ops is the order of its values.")))
}

fn check_collation(
    c: &Change,
    subtype: &SqlType,
    collation: Option<&ast::ObjectName>,
) -> SqlResult<()> {
    let Some(collation) = collation else { return Ok(()) };
    if !subtype.element().unwrap_or(subtype).is_text_like() || *subtype == SqlType::CharByte {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "range collation specified but subtype does not support collation",
        ));
    }
    let found = c.ctx.no_params().collation(&parts(collation))?;
    match found.locale {
        None => Ok(()),
        Some(_) => {
            Err(SqlError::unsupported(format!("ranges by the collation \"{}\"", found.name))
                .with_hint("Bounds of texts compare by their bytes, as COLLATE \"C\" does."))
        }
    }
}

/// Refuses a function that does not compute how far two bounds lie apart.
fn check_difference(c: &Change, name: &Name, subtype: &SqlType) -> SqlResult<()> {
    /// Those that PostgreSQL has for this alone; here they cannot be called.
    const OWN: &[(&str, SqlType)] = &[
        ("float8mi", SqlType::Float8),
        ("int4range_subdiff", SqlType::Int4),
        ("int8range_subdiff", SqlType::Int8),
        ("numrange_subdiff", SqlType::Numeric(None)),
        ("tsrange_subdiff", SqlType::Timestamp),
        ("tstzrange_subdiff", SqlType::TimestampTz),
        ("daterange_subdiff", SqlType::Date),
    ];
    let bare = name.strip_prefix(&["pg_catalog".to_string()]).unwrap_or(name);
    if let [bare] = bare
        && OWN.iter().any(|(own, ty)| own == bare && ty.same_base(subtype))
    {
        return Ok(());
    }
    let (returns, volatility) = difference(c, name, subtype)?.ok_or_else(|| {
        let (name, ty) = (name.join("."), subtype.base_name());
        let text = format!("function {name}({ty}, {ty}) does not exist");
        SqlError::new(SqlState::UNDEFINED_FUNCTION, text)
    })?;
    let wrong = |what: &str| {
        let text = format!("range subtype diff function {} must {what}", name.join("."));
        Err(SqlError::new(SqlState("42P17"), text))
    };
    match volatility {
        _ if returns != SqlType::Float8 => wrong("return type double precision"),
        Volatility::Immutable => Ok(()),
        _ => wrong("be immutable"),
    }
}

/// What the function of this name and of two bounds gives.
fn difference(
    c: &Change,
    name: &Name,
    subtype: &SqlType,
) -> SqlResult<Option<(SqlType, Volatility)>> {
    let given = [subtype.clone(), subtype.clone()];
    let same = |args: &[SqlType]| args.len() == 2 && args.iter().all(|ty| ty.same_base(subtype));
    if let [name] = name.as_slice()
        && let Ok(choice) = braid_scalar::resolve(name, &given, false)
        && same(&choice.args)
    {
        return Ok(Some((choice.ret, choice.function.volatility)));
    }
    let types = c.ctx.no_params();
    let Some(types) = types.named_types() else { return Ok(None) };
    let fits = types.functions(name)?.into_iter().find(|f| {
        let args: Vec<SqlType> = f.params.iter().map(|p| p.ty.clone()).collect();
        same(&args)
    });
    Ok(fits.map(|f| (f.returns.clone(), f.volatility)))
}

/// The name of the type of several ranges: the one that is given, or one made of the type's.
fn multirange_name(
    c: &Change,
    (schema, range): (u32, &str),
    given: Option<&ast::ObjectName>,
) -> SqlResult<String> {
    if let Some(given) = given {
        let (place, name) = match parts(given).as_slice() {
            [name] => (schema, name.clone()),
            written => c.ctx.target_schema(&written.to_vec())?,
        };
        if place != schema {
            return Err(SqlError::unsupported("a multirange type in another schema")
                .with_hint("Both types are in the schema of the range type."));
        }
        if name == range {
            return Err(user_type::taken(&name));
        }
        refuse_taken(c, schema, &name)?;
        return Ok(name);
    }
    let mut name = match range.find("range") {
        Some(at) => format!("{}multi{}", &range[..at], &range[at..]),
        None => constraint_name(range, &[], "multirange"),
    };
    name.truncate(name.floor_char_boundary(MAX_IDENTIFIER));
    refuse_taken(c, schema, &name).map_err(|e| {
        let detail = format!("Failed while creating a multirange type for type \"{range}\".");
        e.with_detail(detail).with_hint(
            "You can manually specify a multirange type name using the \"multirange_type_name\" \
             attribute.",
        )
    })?;
    Ok(name)
}

/// Refuses to drop the type of several ranges alone: it belongs to the other one.
pub(super) fn refuse_multirange(c: &Change, name: &Name) -> SqlResult<()> {
    let Some(range) = c.ctx.range_of_multirange(name)? else { return Ok(()) };
    let shown = |oid: u32| c.catalog.type_name(oid).unwrap_or_default();
    let (range, many) = match range.multirange() {
        Some(of) => {
            (shown(braid_catalog::oid_of(range.id)), shown(braid_catalog::oid_of(of.multirange_id)))
        }
        None => return Ok(()),
    };
    Err(SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop type {many} because type {range} requires it"),
    )
    .with_hint(format!("You can drop type {range} instead.")))
}
