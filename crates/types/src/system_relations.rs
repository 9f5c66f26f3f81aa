//! The relations of `pg_catalog` and `information_schema` by name and oid, and the types that only
//! their columns have.
//!
//! Tables of `pg_catalog` have PostgreSQL's oids, which clients know by heart. PostgreSQL gives
//! those of views when a cluster is made, so that nobody can know them: here they come from the
//! order of the lists, and are kept nowhere.

use std::sync::LazyLock;

use crate::quote_ident;

/// The schema of the catalogs, which every search path begins with.
const PG_CATALOG: &str = "pg_catalog";
/// The schema of the standard's views.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Tables of `pg_catalog`: name, oid, and how many of their first columns are NOT NULL.
const TABLES: &[(&str, u32, usize)] = &[
    ("pg_default_acl", 826, 5),
    ("pg_tablespace", 1213, 3),
    ("pg_shdepend", 1214, 7),
    ("pg_type", 1247, 29),
    ("pg_attribute", 1249, 22),
    ("pg_proc", 1255, 20),
    ("pg_class", 1259, 30),
    ("pg_authid", 1260, 10),
    ("pg_auth_members", 1261, 4),
    ("pg_database", 1262, 13),
    ("pg_foreign_server", 1417, 4),
    ("pg_user_mapping", 1418, 3),
    ("pg_sequence", 2224, 8),
    ("pg_foreign_data_wrapper", 2328, 5),
    ("pg_shdescription", 2396, 3),
    ("pg_aggregate", 2600, 20),
    ("pg_am", 2601, 4),
    ("pg_amop", 2602, 9),
    ("pg_amproc", 2603, 6),
    ("pg_attrdef", 2604, 4),
    ("pg_cast", 2605, 6),
    ("pg_constraint", 2606, 18),
    ("pg_conversion", 2607, 8),
    ("pg_depend", 2608, 7),
    ("pg_description", 2609, 4),
    ("pg_index", 2610, 19),
    ("pg_inherits", 2611, 4),
    ("pg_language", 2612, 8),
    ("pg_largeobject", 2613, 3),
    ("pg_namespace", 2615, 3),
    ("pg_opclass", 2616, 9),
    ("pg_operator", 2617, 15),
    ("pg_rewrite", 2618, 8),
    ("pg_statistic", 2619, 21),
    ("pg_trigger", 2620, 16),
    ("pg_opfamily", 2753, 5),
    ("pg_db_role_setting", 2964, 2),
    ("pg_largeobject_metadata", 2995, 2),
    ("pg_extension", 3079, 6),
    ("pg_foreign_table", 3118, 2),
    ("pg_policy", 3256, 6),
    ("pg_partitioned_table", 3350, 7),
    ("pg_statistic_ext", 3381, 8),
    ("pg_init_privs", 3394, 5),
    ("pg_statistic_ext_data", 3429, 2),
    ("pg_collation", 3456, 7),
    ("pg_event_trigger", 3466, 6),
    ("pg_enum", 3501, 4),
    ("pg_range", 3541, 7),
    ("pg_transform", 3576, 5),
    ("pg_shseclabel", 3592, 4),
    ("pg_seclabel", 3596, 5),
    ("pg_ts_dict", 3600, 5),
    ("pg_ts_parser", 3601, 8),
    ("pg_ts_config", 3602, 5),
    ("pg_ts_config_map", 3603, 4),
    ("pg_ts_template", 3764, 5),
    ("pg_replication_origin", 6000, 2),
    ("pg_subscription", 6100, 11),
    ("pg_subscription_rel", 6102, 3),
    ("pg_publication", 6104, 9),
    ("pg_publication_rel", 6106, 3),
    ("pg_publication_namespace", 6237, 3),
    ("pg_parameter_acl", 6243, 2),
];

/// Tables that all databases share.
const SHARED: [&str; 11] = [
    "pg_tablespace",
    "pg_shdepend",
    "pg_authid",
    "pg_auth_members",
    "pg_database",
    "pg_shdescription",
    "pg_db_role_setting",
    "pg_shseclabel",
    "pg_replication_origin",
    "pg_subscription",
    "pg_parameter_acl",
];

/// Views of `pg_catalog`.
const VIEWS: &[&str] = &[
    "braid_active_statements",
    "braid_cluster_settings",
    "braid_denied_queries",
    "braid_families",
    "braid_interleaved",
    "braid_nodes",
    "braid_ranges",
    "braid_statement_statistics",
    "braid_transaction_statistics",
    "braid_transaction_statistics_minute",
    "pg_available_extension_versions",
    "pg_available_extensions",
    "pg_cursors",
    "pg_file_settings",
    "pg_group",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_indexes",
    "pg_locks",
    "pg_matviews",
    "pg_policies",
    "pg_prepared_statements",
    "pg_prepared_xacts",
    "pg_publication_tables",
    "pg_replication_origin_status",
    "pg_replication_slots",
    "pg_roles",
    "pg_rules",
    "pg_seclabels",
    "pg_sequences",
    "pg_settings",
    "pg_shadow",
    "pg_stat_activity",
    "pg_stat_all_indexes",
    "pg_stat_all_tables",
    "pg_stat_archiver",
    "pg_stat_bgwriter",
    "pg_stat_database",
    "pg_stat_database_conflicts",
    "pg_stat_gssapi",
    "pg_stat_progress_analyze",
    "pg_stat_progress_basebackup",
    "pg_stat_progress_cluster",
    "pg_stat_progress_copy",
    "pg_stat_progress_create_index",
    "pg_stat_progress_vacuum",
    "pg_stat_replication",
    "pg_stat_replication_slots",
    "pg_stat_slru",
    "pg_stat_ssl",
    "pg_stat_statements",
    "pg_stat_statements_info",
    "pg_stat_subscription",
    "pg_stat_subscription_stats",
    "pg_stat_sys_indexes",
    "pg_stat_sys_tables",
    "pg_stat_user_functions",
    "pg_stat_user_indexes",
    "pg_stat_user_tables",
    "pg_stat_wal",
    "pg_stat_wal_receiver",
    "pg_stat_xact_user_functions",
    "pg_statio_all_indexes",
    "pg_statio_all_tables",
    "pg_statio_sys_indexes",
    "pg_statio_sys_tables",
    "pg_statio_user_indexes",
    "pg_statio_user_tables",
    "pg_stats",
    "pg_stats_ext",
    "pg_stats_ext_exprs",
    "pg_tables",
    "pg_timezone_abbrevs",
    "pg_timezone_names",
    "pg_user",
    "pg_user_mappings",
    "pg_views",
];

/// Views of `information_schema`.
const STANDARD_VIEWS: &[&str] = &[
    "administrable_role_authorizations",
    "applicable_roles",
    "attributes",
    "character_sets",
    "check_constraints",
    "collation_character_set_applicability",
    "collations",
    "column_column_usage",
    "column_domain_usage",
    "column_options",
    "column_privileges",
    "column_udt_usage",
    "columns",
    "constraint_column_usage",
    "constraint_table_usage",
    "domain_constraints",
    "domain_udt_usage",
    "domains",
    "element_types",
    "enabled_roles",
    "foreign_data_wrapper_options",
    "foreign_data_wrappers",
    "foreign_server_options",
    "foreign_servers",
    "foreign_table_options",
    "foreign_tables",
    "index_columns",
    "indexes",
    "information_schema_catalog_name",
    "key_column_usage",
    "parameters",
    "referential_constraints",
    "role_column_grants",
    "role_routine_grants",
    "role_table_grants",
    "role_usage_grants",
    "routine_privileges",
    "routines",
    "schemata",
    "sequences",
    "table_constraints",
    "table_privileges",
    "tables",
    "transforms",
    "triggered_update_columns",
    "triggers",
    "usage_privileges",
    "user_defined_types",
    "user_mapping_options",
    "user_mappings",
    "view_column_usage",
    "view_routine_usage",
    "view_table_usage",
    "views",
];

/// Tables of `information_schema`.
const STANDARD_TABLES: [&str; 4] =
    ["sql_features", "sql_implementation_info", "sql_parts", "sql_sizing"];

/// Where the oids of views begin.
const FIRST_VIEW: u32 = 14_000;
/// Where the oids of the types of rows begin, each with that of its arrays.
const FIRST_ROW_TYPE: u32 = 15_000;

/// The types of rows whose oids are known by heart.
const ROW_TYPES: [(&str, u32); 4] =
    [("pg_type", 71), ("pg_attribute", 75), ("pg_proc", 81), ("pg_class", 83)];

/// A relation of the system itself.
#[derive(Debug)]
pub struct SystemRelation {
    /// `pg_catalog` or `information_schema`.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its oid.
    pub oid: u32,
    /// Whether it is a view in PostgreSQL, or a table.
    pub is_view: bool,
    /// Whether all databases share it.
    pub is_shared: bool,
    /// How many of its first columns are NOT NULL.
    pub required: usize,
    /// Oid of the type of its rows.
    pub row_type: u32,
    /// Oid of the type of arrays of its rows.
    pub array_type: u32,
}

impl SystemRelation {
    /// Its name, with its schema where no search path need have it.
    pub fn shown(&self) -> String {
        let name = quote_ident(self.name);
        match self.schema {
            PG_CATALOG => name.to_string(),
            schema => format!("{schema}.{name}"),
        }
    }

    /// Whether a column is NOT NULL, by its place among all.
    pub fn requires(&self, at: usize, column: &str) -> bool {
        // The two tables with such columns behind others.
        let later = matches!(
            (self.name, column),
            ("pg_proc", "prosrc") | ("pg_subscription", "subsynccommit" | "subpublications")
        );
        at < self.required || later
    }
}

static ALL: LazyLock<Vec<SystemRelation>> = LazyLock::new(|| {
    let views = VIEWS.iter().map(|name| (PG_CATALOG, *name, true));
    let standard = STANDARD_VIEWS.iter().map(|name| (INFORMATION_SCHEMA, *name, true));
    let parts = STANDARD_TABLES.iter().map(|name| (INFORMATION_SCHEMA, *name, false));
    let numbered = (FIRST_VIEW..).zip(views.chain(standard).chain(parts));
    let tables =
        TABLES.iter().map(|(name, oid, required)| (*oid, (PG_CATALOG, *name, false), *required));
    let all = tables.chain(numbered.map(|(oid, names)| (oid, names, 0)));
    let row_types = (FIRST_ROW_TYPE..).step_by(2);
    let relation = |((oid, (schema, name, is_view), required), free): ((_, _, _), u32)| {
        let known = ROW_TYPES.iter().find(|(known, _)| *known == name).map(|(_, oid)| *oid);
        SystemRelation {
            schema,
            name,
            oid,
            is_view,
            is_shared: SHARED.contains(&name),
            required,
            row_type: known.unwrap_or(free),
            array_type: free + 1,
        }
    };
    all.zip(row_types).map(relation).collect()
});

/// All relations of the system.
pub fn system_relations() -> &'static [SystemRelation] {
    &ALL
}

/// The one with an oid.
pub fn system_relation(oid: u32) -> Option<&'static SystemRelation> {
    ALL.iter().find(|relation| relation.oid == oid)
}

/// The one that a name means: without a schema one of `pg_catalog`.
pub fn system_relation_named(name: &str) -> Option<&'static SystemRelation> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (folded(schema), folded(name)),
        None => (PG_CATALOG.to_string(), folded(name)),
    };
    ALL.iter().find(|relation| relation.schema == schema && relation.name == name)
}

/// A part of a name as it is meant.
fn folded(part: &str) -> String {
    let part = part.trim();
    match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
        Some(quoted) => quoted.to_string(),
        None => part.to_lowercase(),
    }
}

/// A type that only columns of the system have. Values of it come as those of another type.
#[derive(Debug)]
pub struct SystemType {
    /// Its oid.
    pub oid: u32,
    /// Oid of its arrays, 0 if it has none.
    pub array_oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Whether it is one of the domains of `information_schema`.
    pub is_domain: bool,
}

/// What `information_schema` calls its types, and those of `pg_catalog` whose values are texts and
/// numbers here.
const TYPES: &[SystemType] = &[
    base(28, 1011, "xid"),
    base(142, 143, "xml"),
    base(194, 0, "pg_node_tree"),
    base(1033, 1034, "aclitem"),
    base(3361, 0, "pg_ndistinct"),
    base(3402, 0, "pg_dependencies"),
    base(5017, 0, "pg_mcv_list"),
    domain(13_190, "cardinal_number"),
    domain(13_192, "character_data"),
    domain(13_194, "sql_identifier"),
    domain(13_196, "time_stamp"),
    domain(13_198, "yes_or_no"),
];

const fn base(oid: u32, array_oid: u32, name: &'static str) -> SystemType {
    SystemType { oid, array_oid, name, is_domain: false }
}

const fn domain(oid: u32, name: &'static str) -> SystemType {
    SystemType { oid, array_oid: oid + 1, name, is_domain: true }
}

/// All types that only columns of the system have.
pub fn system_types() -> &'static [SystemType] {
    TYPES
}

/// The name of a type that belongs to the system's relations, as `regtype` shows it.
pub fn system_type_name(oid: u32) -> Option<String> {
    let own = TYPES.iter().find(|ty| oid != 0 && [ty.oid, ty.array_oid].contains(&oid));
    if let Some(ty) = own {
        let schema = if ty.is_domain { "information_schema." } else { "" };
        let array = if oid == ty.oid { "" } else { "[]" };
        return Some(format!("{schema}{}{array}", ty.name));
    }
    let of = ALL.iter().find(|r| [r.row_type, r.array_type].contains(&oid))?;
    let array = if oid == of.row_type { "" } else { "[]" };
    Some(of.shown() + array)
}

/// The oid of such a type by its name.
pub fn system_type_oid(name: &str) -> Option<u32> {
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    if let Some(of) = system_relation_named(name) {
        return Some(if is_array { of.array_type } else { of.row_type });
    }
    let (is_domain, bare) = match name.split_once('.') {
        Some((schema, bare)) => (folded(schema) == INFORMATION_SCHEMA, folded(bare)),
        None => (false, folded(name)),
    };
    let own = TYPES.iter().find(|ty| ty.is_domain == is_domain && ty.name == bare)?;
    Some(if is_array { own.array_oid } else { own.oid }).filter(|oid| *oid != 0)
}

/// Letter in lists of privileges (`aclitem`), and name, of each, by its bit.
pub const PRIVILEGES: [(char, &str); 14] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('s', "SET"),
    ('A', "ALTER SYSTEM"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_have_an_oid() {
        let all = system_relations();
        let oids: HashSet<u32> = all.iter().map(|r| r.oid).collect();
        let types: HashSet<u32> = all.iter().flat_map(|r| [r.row_type, r.array_type]).collect();
        assert_eq!((oids.len(), types.len()), (all.len(), 2 * all.len()));
        assert!(oids.union(&types).all(|oid| *oid < 16_384));
        let own = TYPES.iter().flat_map(|ty| [ty.oid, ty.array_oid]);
        assert!(own.filter(|oid| *oid != 0).all(|oid| !types.contains(&oid)));
    }

    #[test]
    fn names_lead_to_them() {
        let oid = |name| system_relation_named(name).map(|r| r.oid);
        assert_eq!(oid("pg_class"), Some(1259));
        assert_eq!(oid("\"pg_catalog\".\"pg_class\""), Some(1259));
        assert_eq!(oid("PG_CATALOG.Pg_Type"), Some(1247));
        assert_eq!(oid("\"PG_CLASS\""), None);
        assert_eq!(oid("tables"), None);
        let tables = system_relation_named("information_schema.tables").unwrap();
        assert_eq!(system_relation(tables.oid).unwrap().shown(), "information_schema.tables");
        assert_eq!(system_type_name(83).as_deref(), Some("pg_class"));
        assert_eq!(system_type_oid("aclitem[]"), Some(1034));
        assert_eq!(system_type_oid("sql_identifier"), None);
        let name = "information_schema.sql_identifier";
        assert_eq!(system_type_oid(name).and_then(system_type_name).as_deref(), Some(name));
    }
}
