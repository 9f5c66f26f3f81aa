//! Tables of `information_schema` about what is not here: they have their columns and no rows.

/// The columns of one.
pub(super) fn layout(name: &str) -> Option<&'static str> {
    of_servers(name).or_else(|| of_the_standard(name))
}

fn of_servers(name: &str) -> Option<&'static str> {
    Some(match name {
        "foreign_data_wrapper_options" => {
            "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, \
             option_name name, option_value text"
        }
        "foreign_data_wrappers" => {
            "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, \
             authorization_identifier name, library_name text, \
             foreign_data_wrapper_language text"
        }
        "foreign_server_options" => {
            "foreign_server_catalog name, foreign_server_name name, option_name name, \
             option_value text"
        }
        "foreign_servers" => {
            "foreign_server_catalog name, foreign_server_name name, \
             foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, \
             foreign_server_type text, foreign_server_version text, \
             authorization_identifier name"
        }
        "foreign_table_options" => {
            "foreign_table_catalog name, foreign_table_schema name, foreign_table_name \
             name, option_name name, option_value text"
        }
        "foreign_tables" => {
            "foreign_table_catalog name, foreign_table_schema name, foreign_table_name \
             name, foreign_server_catalog name, foreign_server_name name"
        }
        "user_mapping_options" => {
            "authorization_identifier name, foreign_server_catalog name, \
             foreign_server_name name, option_name name, option_value text"
        }
        "user_mappings" => {
            "authorization_identifier name, foreign_server_catalog name, \
             foreign_server_name name"
        }
        _ => return None,
    })
}

fn of_the_standard(name: &str) -> Option<&'static str> {
    Some(match name {
        "sql_features" => {
            "feature_id text, feature_name text, sub_feature_id text, sub_feature_name \
             text, is_supported yes_or_no, is_verified_by text, comments text"
        }
        "sql_implementation_info" => {
            "implementation_info_id text, implementation_info_name text, integer_value \
             int4, character_value text, comments text"
        }
        "sql_parts" => {
            "feature_id text, feature_name text, is_supported yes_or_no, is_verified_by \
             text, comments text"
        }
        "sql_sizing" => "sizing_id int4, sizing_name text, supported_value int4, comments text",
        "transforms" => {
            "udt_catalog name, udt_schema name, udt_name name, specific_catalog name, \
             specific_schema name, specific_name name, group_name name, transform_type \
             text"
        }
        "triggered_update_columns" => {
            "trigger_catalog name, trigger_schema name, trigger_name name, \
             event_object_catalog name, event_object_schema name, event_object_table \
             name, event_object_column name"
        }
        "triggers" => {
            "trigger_catalog name, trigger_schema name, trigger_name name, \
             event_manipulation text, event_object_catalog name, event_object_schema \
             name, event_object_table name, action_order int4, action_condition text, \
             action_statement text, action_orientation text, action_timing text, \
             action_reference_old_table name, action_reference_new_table name, \
             action_reference_old_row name, action_reference_new_row name, created \
             timestamptz"
        }
        _ => return None,
    })
}
