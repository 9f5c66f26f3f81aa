//! Which types and functions of users a name means: those of a catalog, by a search path.

use std::sync::Arc;

use braid_catalog::{Catalog, Column, Domain, Refined, Relation, TypeKind, UserType, oid_of};
use braid_parser::parse_expr;
use braid_scalar::{ParamTypes, Refinement, Scope, TypeNames, UserBody, UserFunction};
use braid_types::{CastContext, Collation, Datum, IntervalFields, SqlError, SqlResult, SqlType};
use sqlparser::ast::DataType;

use super::standard_domains;
use crate::session::prepared::Prepared;
use crate::session::{functions, is_temporary_schema};

/// The types of a database as a search path sees them.
#[derive(Debug)]
struct InReach {
    catalog: Arc<Catalog>,
    database: u32,
    search_path: Vec<String>,
}

impl InReach {
    fn find(&self, parts: &[String]) -> Option<Arc<UserType>> {
        find_type(&self.catalog, self.database, &self.search_path, parts)
    }

    /// Whether a name means the type of the extension `citext`, which the database has.
    fn is_citext(&self, parts: &[String]) -> bool {
        let (Some(name), true) = (parts.last(), parts.len() <= 2) else { return false };
        let in_reach = |schema: u32| match parts {
            [schema_name, _] => {
                let named = self.catalog.schema(self.database, schema_name);
                named.is_some_and(|named| oid_of(named.id) == schema)
            }
            _ => self.search_path.iter().any(|name| {
                let known = self.catalog.schema(self.database, name);
                known.is_some_and(|known| oid_of(known.id) == schema)
            }),
        };
        let installed = || self.catalog.extension(self.database, "citext");
        name == "citext" && installed().is_some_and(|extension| in_reach(extension.schema))
    }

    /// The type of ranges several of which are a type of this name.
    fn range_of(&self, parts: &[String]) -> Option<Arc<UserType>> {
        find_range_of(&self.catalog, self.database, &self.search_path, parts)
    }

    /// The type of the rows of a table or view of this name.
    fn row_type(&self, parts: &[String]) -> Option<SqlType> {
        let catalog = &self.catalog;
        let found = match parts {
            [name] => catalog.resolve(self.database, &self.search_path, name),
            [schema, name] => catalog.relation(catalog.schema(self.database, schema)?.id, name),
            _ => None,
        };
        match found? {
            Relation::Table(table) | Relation::Partition(table) => {
                Some(SqlType::Composite(catalog.row_type(&table)))
            }
            Relation::View(view) => Some(SqlType::Composite(catalog.row_type_of_view(&view))),
            _ => None,
        }
    }
}

/// A type of a user by a name of one or two parts.
pub(in crate::session) fn find_type(
    catalog: &Catalog,
    database: u32,
    search_path: &[String],
    parts: &[String],
) -> Option<Arc<UserType>> {
    match parts {
        [name] => catalog.resolve_type(database, search_path, name),
        [schema, name] => {
            let schema = meant_schema(search_path, schema);
            catalog.type_in(catalog.schema(database, schema)?.id, name)
        }
        _ => None,
    }
    .cloned()
}

/// The schema of the session's temporary objects, with which its search path begins.
fn temporary_schema(search_path: &[String]) -> Option<&String> {
    search_path.first().filter(|first| is_temporary_schema(first))
}

/// The schema that a name means: `pg_temp` is that of the session.
fn meant_schema<'a>(search_path: &'a [String], schema: &'a str) -> &'a str {
    match temporary_schema(search_path) {
        Some(own) if schema == "pg_temp" => own,
        _ => schema,
    }
}

/// The type of ranges several of which are a type of this name.
fn find_range_of(
    catalog: &Catalog,
    database: u32,
    search_path: &[String],
    parts: &[String],
) -> Option<Arc<UserType>> {
    match parts {
        [name] => catalog.resolve_multirange(database, search_path, name),
        [schema, name] => catalog.multirange_in(catalog.schema(database, schema)?.id, name),
        _ => None,
    }
    .cloned()
}

impl TypeNames for InReach {
    fn user_type(&self, parts: &[String]) -> Option<SqlType> {
        match self.find(parts) {
            Some(user) => self.catalog.sql_type(&user),
            None if self.is_citext(parts) => Some(SqlType::Citext),
            None if let Some(standard) = standard_domains::named(parts) => {
                Some(standard.base.clone())
            }
            None if let Some(user) = self.range_of(parts) => self.catalog.multirange_type(&user),
            None => self.row_type(parts).or_else(|| {
                // The type of arrays has a name of its own, too.
                let (name, schema) = parts.split_last()?;
                let element = [schema, &[name.strip_prefix('_')?.to_string()]].concat();
                self.user_type(&element).map(|ty| ty.array_of())
            }),
        }
    }

    fn domain(&self, parts: &[String]) -> SqlResult<Option<Refinement>> {
        let Some(user) = self.find(parts) else {
            let standard = standard_domains::named(parts);
            return standard.map(|own| own.refinement(&mut self.params())).transpose();
        };
        let found = match &user.kind {
            TypeKind::Domain(_) => of_domain(&self.catalog, user.id, &mut self.params())?,
            TypeKind::Composite(_) => match self.catalog.sql_type(&user) {
                Some(ty) => of_type(&self.catalog, &ty, &mut self.params())?,
                None => return Ok(None),
            },
            TypeKind::Enum(_) | TypeKind::Range(_) => return Ok(None),
        };
        Ok(Some(found))
    }

    fn refinement_of_type(&self, ty: &SqlType) -> SqlResult<Refinement> {
        of_type(&self.catalog, ty, &mut self.params())
    }

    fn array_oid(&self, element: u32) -> Option<u32> {
        self.catalog.user_type_by_oid(element).map(|user| oid_of(user.array))
    }

    fn collation(&self, parts: &[String]) -> SqlResult<Option<Arc<Collation>>> {
        let catalog = &self.catalog;
        let found = match parts {
            [name] => catalog.resolve_collation(self.database, &self.search_path, name),
            [schema, name] => match catalog.schema(self.database, schema) {
                Some(schema) => catalog.collation_in(schema.id, name),
                None if schema == "pg_catalog" => None,
                None => return Err(crate::session::no_schema(schema)),
            },
            _ => None,
        };
        Ok(found.map(|own| Arc::new(own.collation())))
    }

    fn functions(&self, parts: &[String]) -> SqlResult<Vec<Arc<UserFunction>>> {
        let catalog = &self.catalog;
        if catalog.functions().next().is_none() {
            return Ok(Vec::new());
        }
        let found = match parts {
            // Temporary functions are called with their schema only.
            [name] => {
                let first = usize::from(temporary_schema(&self.search_path).is_some());
                catalog.resolve_functions(self.database, &self.search_path[first..], name)
            }
            [schema, name] => {
                match catalog.schema(self.database, meant_schema(&self.search_path, schema)) {
                    Some(schema) => catalog.functions_in(schema.id, name).cloned().collect(),
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        found.iter().map(|f| functions::callable(catalog, f)).collect()
    }

    fn body(&self, function: u32) -> SqlResult<UserBody> {
        match self.catalog.function(function) {
            Some(f) => functions::body(f),
            None => Err(SqlError::internal("a function is gone")),
        }
    }
}

impl InReach {
    fn params(&self) -> ParamTypes {
        let named = types_in_reach(&self.catalog, self.database, &self.search_path);
        ParamTypes::default().with_types(named)
    }
}

/// What a domain and those that it is over ask of values.
fn of_domain(catalog: &Catalog, id: u32, params: &mut ParamTypes) -> SqlResult<Refinement> {
    let found = catalog.user_type(id).zip(catalog.domain(id));
    let Some((user, domain)) = found else { return Ok(Refinement::default()) };
    let name = catalog.type_name(oid_of(id)).unwrap_or_default();
    let base = catalog.sql_type(user).unwrap_or_else(|| domain.base.clone());
    let inner = of_declared(catalog, domain.over, &base, params)?;
    let mut own = judged(domain, name, &base, params)?;
    if let (Some(judge), Some(schema)) = (&mut own.domain, catalog.schema_by_id(user.schema)) {
        let judge = Arc::make_mut(judge);
        judge.place = Some((schema.name.clone(), user.name.clone()));
        judge.oids = Some((oid_of(user.id), oid_of(user.array)));
    }
    // All conditions are told by the name of the outermost domain, the inner ones first.
    let domain = match (inner.domain, own.domain) {
        (Some(inner), Some(own)) => Some(Arc::new(braid_scalar::Domain {
            name: own.name.clone(),
            place: own.place.clone(),
            oids: own.oids,
            not_null: inner.not_null || own.not_null,
            checks: inner.checks.iter().chain(&own.checks).cloned().collect(),
        })),
        (inner, own) => own.or(inner),
    };
    Ok(Refinement {
        precision: own.precision.or(inner.precision),
        fields: own.fields.or(inner.fields),
        domain,
        ..inner
    })
}

/// What the types of a type's parts ask of values.
fn of_type(catalog: &Catalog, ty: &SqlType, params: &mut ParamTypes) -> SqlResult<Refinement> {
    match ty {
        SqlType::Array(element) => Ok(of_type(catalog, element, params)?.of_elements()),
        SqlType::Composite(row) => {
            let Some(TypeKind::Composite(fields)) =
                catalog.user_type_by_oid(row.oid).map(|user| &user.kind)
            else {
                return Ok(Refinement::default());
            };
            let mut members = Vec::new();
            for (at, field) in fields.iter().enumerate() {
                let ty = catalog.as_known(&field.ty);
                let ty = ty.as_ref().unwrap_or(&field.ty);
                let member = of_declared(catalog, field.refinement, ty, params)?;
                if !member.is_none() {
                    members.push((at, member));
                }
            }
            Ok(Refinement { members, ..Refinement::default() })
        }
        _ => Ok(Refinement::default()),
    }
}

/// What a declared type asks of values.
fn of_declared(
    catalog: &Catalog,
    refined: Option<Refined>,
    ty: &SqlType,
    params: &mut ParamTypes,
) -> SqlResult<Refinement> {
    let own = match refined {
        None => return of_type(catalog, ty, params),
        Some(Refined::Domain(id)) => return of_domain(catalog, id, params),
        Some(Refined::Elements(id)) => of_domain(catalog, id, params)?,
        Some(Refined::Precision(digits)) => {
            Refinement { precision: Some(digits), ..Refinement::default() }
        }
        Some(Refined::Fields(typmod)) => {
            let (fields, precision) = IntervalFields::of_typmod(typmod);
            Refinement { precision, fields, ..Refinement::default() }
        }
    };
    Ok(if ty.element().is_some() { own.of_elements() } else { own })
}

/// A domain with its conditions bound.
pub(crate) fn judged(
    domain: &Domain,
    name: String,
    base: &SqlType,
    params: &mut ParamTypes,
) -> SqlResult<Refinement> {
    let scope = value_scope(base);
    let mut checks = Vec::new();
    for check in &domain.checks {
        let expr = parse_expr(&check.expr)?;
        let bound = braid_scalar::bind_bool(&expr, "CHECK", &scope, params)?;
        checks.push((check.name.clone(), bound));
    }
    let not_null = domain.not_null;
    let judge = braid_scalar::Domain { name, place: None, oids: None, not_null, checks };
    let (domain_digits, fields) =
        (domain.precision, domain.fields.and_then(|typmod| IntervalFields::of_typmod(typmod).0));
    let domain = Some(Arc::new(judge));
    Ok(Refinement { precision: domain_digits, fields, domain, ..Refinement::default() })
}

/// Where the conditions of a domain look for `VALUE`. It has the collation of the base type,
/// whatever the domain's is, as in PostgreSQL.
pub(crate) fn value_scope(base: &SqlType) -> Scope {
    Scope::table("", None, [("value".to_string(), base.clone(), true)])
}

/// What binding asks about types.
pub fn types_in_reach(
    catalog: &Arc<Catalog>,
    database: u32,
    search_path: &[String],
) -> Option<Arc<dyn TypeNames>> {
    let search_path = search_path.to_vec();
    Some(Arc::new(InReach { catalog: catalog.clone(), database, search_path }))
}

impl crate::session::Context {
    /// Parameters with the types that the client has declared, and all types that can be named.
    pub(crate) fn params(&self, declared: &[Option<SqlType>]) -> ParamTypes {
        let types = types_in_reach(&self.catalog, self.database, &self.search_path);
        ParamTypes::new(declared).with_types(types)
    }

    /// The type that a parsed type name means.
    ///
    /// # Errors
    /// Those of [`braid_scalar::sql_type_of`].
    pub(crate) fn type_of(&self, data_type: &DataType) -> SqlResult<SqlType> {
        braid_scalar::sql_type_of(data_type, self.no_params().named_types())
    }

    /// The type of a user that a name means.
    ///
    /// # Errors
    /// 0A000 for a reference to another database.
    pub(crate) fn user_type(&self, name: &[String]) -> SqlResult<Option<Arc<UserType>>> {
        let (schema, bare) = self.split(&name.to_vec())?;
        let parts: Vec<String> = schema.into_iter().chain([bare]).collect();
        Ok(find_type(&self.catalog, self.database, &self.search_path, &parts))
    }

    /// The type of ranges several of which are a type of this name.
    ///
    /// # Errors
    /// 0A000 for a reference to another database.
    pub(crate) fn range_of_multirange(&self, name: &[String]) -> SqlResult<Option<Arc<UserType>>> {
        let (schema, bare) = self.split(&name.to_vec())?;
        let parts: Vec<String> = schema.into_iter().chain([bare]).collect();
        Ok(find_range_of(&self.catalog, self.database, &self.search_path, &parts))
    }

    /// What a column's declared type asks of its values.
    ///
    /// # Errors
    /// Those of binding a domain's conditions.
    pub(crate) fn refinement(&self, column: &Column) -> SqlResult<Refinement> {
        of_declared(&self.catalog, column.refinement, &column.ty, &mut self.no_params())
    }

    /// Values of parameters that are of domains, as these want them.
    ///
    /// # Errors
    /// 23502 and 23514 of the domains; those of a value that is too long for them.
    pub(crate) fn as_domains(&self, target: &Prepared, values: &mut [Datum]) -> SqlResult<()> {
        for (at, oid) in &target.domains {
            let Some(found) = self.catalog.by_oid(*oid) else { continue };
            let asked = of_domain(&self.catalog, found.user.id, &mut self.no_params())?;
            let asked = if found.is_array { asked.of_elements() } else { asked };
            let (Some(ty), Some(value)) = (self.catalog.sql_type_by_oid(*oid), values.get_mut(*at))
            else {
                continue;
            };
            let (from, context) = (ty.base(), CastContext::Assignment);
            if from != ty {
                *value = braid_scalar::convert_datum(value, &from, &ty, context, &self.eval)?;
            }
            *value = asked.refine(std::mem::replace(value, Datum::Null), &self.eval)?;
        }
        Ok(())
    }

    /// For binding an expression without parameters.
    pub(crate) fn no_params(&self) -> ParamTypes {
        self.params(&[])
    }
}
