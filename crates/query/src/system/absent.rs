//! Tables of `pg_catalog` about things that are not here: triggers, policies, publications. They
//! exist, so that clients' queries run, and are empty.

/// Name and layout of each.
pub const EMPTY: &[(&str, &str)] = &[
    (
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, \
         polroles oid[], polqual pg_node_tree, polwithcheck pg_node_tree",
    ),
    (
        "pg_publication",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, \
         pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool",
    ),
    (
        "pg_publication_rel",
        "oid oid, prpubid oid, prrelid oid, prqual pg_node_tree, prattrs int2vector",
    ),
    ("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    (
        "pg_publication_tables",
        "pubname name, schemaname name, tablename name, attnames name[], rowfilter text",
    ),
    (
        "pg_subscription",
        "oid oid, subdbid oid, subskiplsn pg_lsn, subname name, subowner oid, subenabled bool, \
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
         amproc regproc",
    ),
    ("pg_transform", "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc"),
    (
        "pg_ts_parser",
        "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, \
         prsend regproc, prsheadline regproc, prslextype regproc",
    ),
    (
        "pg_ts_template",
        "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc",
    ),
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
         stxstattarget int4, stxkeys int2vector, stxkind char[], stxexprs pg_node_tree",
    ),
    (
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, \
         tgenabled char, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, \
         tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, \
         tgattr int2vector, tgargs bytea, tgqual pg_node_tree, tgoldtable name, tgnewtable name",
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
         srvacl aclitem[], srvoptions text[]",
    ),
    (
        "pg_foreign_data_wrapper",
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, \
         fdwacl aclitem[], fdwoptions text[]",
    ),
    ("pg_user_mapping", "oid oid, umuser oid, umserver oid, umoptions text[]"),
    (
        "pg_aggregate",
        "aggfnoid regproc, aggkind char, aggnumdirectargs int2, aggtransfn regproc, \
         aggfinalfn regproc, aggcombinefn regproc, aggserialfn regproc, \
         aggdeserialfn regproc, aggmtransfn regproc, aggminvtransfn regproc, \
         aggmfinalfn regproc, aggfinalextra bool, aggmfinalextra bool, aggfinalmodify char, \
         aggmfinalmodify char, aggsortop oid, aggtranstype oid, aggtransspace int4, \
         aggmtranstype oid, aggmtransspace int4, agginitval text, aggminitval text",
    ),
    (
        "pg_conversion",
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, \
         contoencoding int4, conproc regproc, condefault bool",
    ),
    ("pg_ts_config", "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid"),
    (
        "pg_event_trigger",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, \
         evttags text[]",
    ),
    ("pg_parameter_acl", "oid oid, parname text, paracl aclitem[]"),
    ("pg_largeobject_metadata", "oid oid, lomowner oid, lomacl aclitem[]"),
    ("pg_seclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    ("pg_shseclabel", "objoid oid, classoid oid, provider text, label text"),
    (
        "pg_prepared_xacts",
        "transaction xid, gid text, prepared timestamptz, owner name, database name",
    ),
    ("pg_largeobject", "loid oid, pageno int4, data bytea"),
    ("pg_replication_origin", "roident oid, roname text"),
    (
        "pg_statistic_ext_data",
        "stxoid oid, stxdinherit bool, stxdndistinct pg_ndistinct, \
         stxddependencies pg_dependencies, stxdmcv pg_mcv_list, stxdexpr pg_statistic[]",
    ),
    ("pg_subscription_rel", "srsubid oid, srrelid oid, srsubstate char, srsublsn pg_lsn"),
    (
        "pg_policies",
        "schemaname name, tablename name, policyname name, permissive text, roles name[], \
         cmd text, qual text, with_check text",
    ),
    ("pg_rules", "schemaname name, tablename name, rulename name, definition text"),
    (
        "pg_replication_slots",
        "slot_name name, plugin name, slot_type text, datoid oid, database name, \
         temporary bool, active bool, active_pid int4, xmin xid, catalog_xmin xid, \
         restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, \
         safe_wal_size int8, two_phase bool",
    ),
    (
        "pg_replication_origin_status",
        "local_id oid, external_id text, remote_lsn pg_lsn, local_lsn pg_lsn",
    ),
    (
        "pg_stat_replication",
        "pid int4, usesysid oid, usename name, application_name text, client_addr inet, \
         client_hostname text, client_port int4, backend_start timestamptz, \
         backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn pg_lsn, \
         replay_lsn pg_lsn, write_lag interval, flush_lag interval, replay_lag interval, \
         sync_priority int4, sync_state text, reply_time timestamptz",
    ),
    (
        "pg_stat_replication_slots",
        "slot_name text, spill_txns int8, spill_count int8, spill_bytes int8, \
         stream_txns int8, stream_count int8, stream_bytes int8, total_txns int8, \
         total_bytes int8, stats_reset timestamptz",
    ),
    (
        "pg_stat_subscription",
        "subid oid, subname name, pid int4, relid oid, received_lsn pg_lsn, \
         last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, \
         latest_end_lsn pg_lsn, latest_end_time timestamptz",
    ),
    (
        "pg_stat_subscription_stats",
        "subid oid, subname name, apply_error_count int8, sync_error_count int8, \
         stats_reset timestamptz",
    ),
    (
        "pg_stat_wal_receiver",
        "pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4, \
         written_lsn pg_lsn, flushed_lsn pg_lsn, received_tli int4, \
         last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, \
         latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name text, \
         sender_host text, sender_port int4, conninfo text",
    ),
    (
        "pg_stat_user_functions",
        "funcid oid, schemaname name, funcname name, calls int8, total_time float8, \
         self_time float8",
    ),
    (
        "pg_stat_xact_user_functions",
        "funcid oid, schemaname name, funcname name, calls int8, total_time float8, \
         self_time float8",
    ),
    (
        "pg_hba_file_rules",
        "line_number int4, type text, database text[], user_name text[], address text, \
         netmask text, auth_method text, options text[], error text",
    ),
    (
        "pg_file_settings",
        "sourcefile text, sourceline int4, seqno int4, name text, setting text, \
         applied bool, error text",
    ),
    (
        "pg_ident_file_mappings",
        "line_number int4, map_name text, sys_name text, pg_username text, error text",
    ),
    (
        "pg_stat_progress_analyze",
        "pid int4, datid oid, datname name, relid oid, phase text, sample_blks_total int8, \
         sample_blks_scanned int8, ext_stats_total int8, ext_stats_computed int8, \
         child_tables_total int8, child_tables_done int8, current_child_table_relid oid",
    ),
    (
        "pg_stat_progress_basebackup",
        "pid int4, phase text, backup_total int8, backup_streamed int8, \
         tablespaces_total int8, tablespaces_streamed int8",
    ),
    (
        "pg_stat_progress_cluster",
        "pid int4, datid oid, datname name, relid oid, command text, phase text, \
         cluster_index_relid oid, heap_tuples_scanned int8, heap_tuples_written int8, \
         heap_blks_total int8, heap_blks_scanned int8, index_rebuild_count int8",
    ),
    (
        "pg_stat_slru",
        "name text, blks_zeroed int8, blks_hit int8, blks_read int8, blks_written int8, \
         blks_exists int8, flushes int8, truncates int8, stats_reset timestamptz",
    ),
    (
        "pg_stats_ext",
        "schemaname name, tablename name, statistics_schemaname name, statistics_name name, \
         statistics_owner name, attnames name[], exprs text[], kinds char[], inherited bool, \
         n_distinct text, dependencies text, most_common_vals text[], \
         most_common_val_nulls bool[], most_common_freqs float8[], \
         most_common_base_freqs float8[]",
    ),
    (
        "pg_stats_ext_exprs",
        "schemaname name, tablename name, statistics_schemaname name, statistics_name name, \
         statistics_owner name, expr text, inherited bool, null_frac float4, avg_width int4, \
         n_distinct float4, most_common_vals anyarray, most_common_freqs float4[], \
         histogram_bounds anyarray, correlation float4, most_common_elems anyarray, \
         most_common_elem_freqs float4[], elem_count_histogram float4[]",
    ),
    (
        "pg_stat_progress_vacuum",
        "pid int4, datid oid, datname name, relid oid, phase text, heap_blks_total int8, \
         heap_blks_scanned int8, heap_blks_vacuumed int8, index_vacuum_count int8, \
         max_dead_tuples int8, num_dead_tuples int8",
    ),
];
