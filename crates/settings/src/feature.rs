//! Classes of statements that can be switched off: `feature.<class>.enabled`.

/// Declares the features: name of the class, and what of it is switched off.
macro_rules! features {
    ($($name:ident $class:literal $about:literal)*) => {
        /// A class of statements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $(#[doc = $about] $name,)*
        }

        impl Feature {
            /// All of them.
            pub const ALL: &[Feature] = &[$(Feature::$name),*];

            /// Its name, between `feature.` and `.enabled`.
            pub fn class(self) -> &'static str {
                match self { $(Feature::$name => $class,)* }
            }

            /// The setting that switches it.
            pub fn setting(self) -> &'static str {
                match self { $(Feature::$name => concat!("feature.", $class, ".enabled"),)* }
            }

            /// What is switched off.
            pub fn about(self) -> &'static str {
                match self { $(Feature::$name => $about,)* }
            }
        }
    };
}

features! {
    Analyze "analyze" "ANALYZE by hand"
    AsOf "as_of" "AS OF SYSTEM TIME"
    Copy "copy" "COPY, in both directions"
    CreateIndex "create_index" "CREATE INDEX, also within CREATE TABLE"
    Cursor "cursor" "DECLARE CURSOR"
    Do "do" "DO"
    ExplainAnalyze "explain_analyze" "EXPLAIN ANALYZE, which runs the statement"
    ExplainDebug "explain_debug" "EXPLAIN ANALYZE (DEBUG), which shows counts and settings"
    Export "export" "EXPORT INTO"
    Function "function" "CREATE, ALTER and DROP FUNCTION"
    Import "import" "IMPORT INTO"
    ImportDump "import_dump" "IMPORT PGDUMP"
    Interleave "interleave" "INTERLEAVE IN, and tables that move into or out of others"
    MaterializedView "materialized_view" "CREATE and REFRESH MATERIALIZED VIEW"
    Merge "merge" "MERGE"
    Notify "notify" "LISTEN and NOTIFY"
    Recursion "recursion" "WITH RECURSIVE"
    Role "role" "roles, privileges, owners"
    RowDeletionPolicy "row_deletion_policy" "ROW DELETION POLICY and TTL: declaring one"
    SchemaChange "schema_change" "everything that changes the schema: CREATE, ALTER, DROP, TRUNCATE"
    SplitAt "split_at" "ALTER TABLE SPLIT AT"
    Temporary "temporary" "temporary tables, views and sequences"
    Truncate "truncate" "TRUNCATE"
    UnfilteredWrite "unfiltered_write" "UPDATE and DELETE without WHERE"
}

impl Feature {
    /// Its place in a set of features.
    pub(crate) fn bit(self) -> u64 {
        1 << self as u64
    }
}
