//! Tables of `pg_catalog` about things that are not here: triggers, policies, publications. They
//! exist, so that clients' queries run, and are empty.

/// Name and layout of each.
pub const EMPTY: &[(&str, &str)] = &[
    (
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, \
         polroles oid[], polqual text, polwithcheck text",
    ),
    (
        "pg_publication",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, \
         pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool",
    ),
    ("pg_publication_rel", "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]"),
    ("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    ("pg_publication_tables", "pubname name, schemaname name, tablename name"),
    (
        "pg_subscription",
        "oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled bool, \
         subbinary bool, substream bool, subtwophasestate char, subdisableonerr bool, \
         subconninfo text, subslotname name, subsynccommit text, subpublications text[]",
    ),
    ("pg_opfamily", "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid"),
    (
        "pg_amop",
        "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, \
         amoppurpose char, amopopr oid, amopmethod oid, amopsortfamily oid",
    ),
    (
        "pg_amproc",
        "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, \
         amproc oid",
    ),
    ("pg_transform", "oid oid, trftype oid, trflang oid, trffromsql oid, trftosql oid"),
    (
        "pg_ts_parser",
        "oid oid, prsname name, prsnamespace oid, prsstart oid, prstoken oid, prsend oid, \
         prsheadline oid, prslextype oid",
    ),
    ("pg_ts_template", "oid oid, tmplname name, tmplnamespace oid, tmplinit oid, tmpllexize oid"),
    (
        "pg_ts_dict",
        "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, \
         dictinitoption text",
    ),
    ("pg_ts_config_map", "mapcfg oid, maptokentype int4, mapseqno int4, mapdict oid"),
    (
        "pg_seclabels",
        "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, \
         provider text, label text",
    ),
    (
        "pg_user_mappings",
        "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]",
    ),
    (
        "pg_statistic_ext",
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, \
         stxstattarget int4, stxkeys int2vector, stxkind text[], stxexprs text",
    ),
    (
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, \
         tgenabled char, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, \
         tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, \
         tgattr int2vector, tgargs bytea, tgqual text, tgoldtable name, tgnewtable name",
    ),
    (
        "pg_shdepend",
        "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, \
         deptype char",
    ),
    ("pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions text[]"),
    (
        "pg_foreign_server",
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, \
         srvacl text[], srvoptions text[]",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, \
         fdwacl text[], fdwoptions text[]",
    ),
    ("pg_user_mapping", "oid oid, umuser oid, umserver oid, umoptions text[]"),
    ("pg_aggregate", "aggfnoid oid, aggkind char, aggnumdirectargs int2"),
    (
        "pg_conversion",
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, \
         contoencoding int4, conproc oid, condefault bool",
    ),
    ("pg_ts_config", "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid"),
    (
        "pg_event_trigger",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, \
         evttags text[]",
    ),
    ("pg_parameter_acl", "oid oid, parname text, paracl text[]"),
    ("pg_largeobject_metadata", "oid oid, lomowner oid, lomacl text[]"),
    ("pg_seclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    ("pg_shseclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    ("pg_init_privs", "objoid oid, classoid oid, objsubid int4, privtype char, initprivs text[]"),
    (
        "pg_stat_user_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, \
         idx_scan int8, idx_tup_read int8, idx_tup_fetch int8",
    ),
    (
        "pg_stat_all_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, \
         idx_scan int8, idx_tup_read int8, idx_tup_fetch int8",
    ),
    (
        "pg_prepared_xacts",
        "transaction oid, gid text, prepared timestamptz, owner name, database name",
    ),
];
