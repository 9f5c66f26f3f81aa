#!/usr/bin/env bash
# dbt on PostgreSQL's adapter: seeds, models of each kind, snapshots, tests, documentation; then what is in the
# database. usage: run.sh URL (dbt in PATH)
set -uo pipefail
cd "$(dirname "$0")"
url=$1
rest=${url#*//}
user=${rest%@*}
host=${rest#*@}
port=${host#*:}
export DBT_PROFILES_DIR=$PWD DBT_USER=$user DBT_PORT=${port%%/*} DBT_DATABASE=${url##*/}
export DBT_SEND_ANONYMOUS_USAGE_STATS=false DBT_USE_COLORS=false DO_NOT_TRACK=1
rm -rf target logs
# What each step says: names, kinds and results, without times and places.
said() {
  echo "== $*"
  dbt --log-format text --no-use-colors "$@" 2>&1 |
    grep -aE 'OK |PASS|ERROR|FAIL|Database Error|Done\.|HINT|LINE|DETAIL|Compilation' |
    sed -E 's/^[0-9:]+ +//; s/ in [0-9.]+s//; s/\.{2,}/ /; s/^[0-9]+ of [0-9]+ //' | sort
}
said debug
said seed --full-refresh
said run
said test
said snapshot
# The source changes: incremental models and snapshots see it.
psql -Xq "$url" -c "UPDATE dbt_main.customers SET city = 'Lund', updated_at = '2024-03-01' WHERE id = 2" \
  -c "DELETE FROM dbt_main.customers WHERE id = 3" \
  -c "INSERT INTO dbt_main.orders VALUES (99, 1, '2024-02-09', 12.50, 'paid')"
said snapshot
said run
said run --full-refresh
said build
said docs generate
python3 - <<'P'
import json
c = json.load(open("target/catalog.json"))
for kind in ("nodes", "sources"):
    for name, node in sorted(c[kind].items()):
        m = node["metadata"]
        print(name, m["type"], m["schema"], m["name"], m["comment"])
        for column in node["columns"].values():
            print("  ", column["index"], column["name"], column["type"], column["comment"])
P
for what in 'dbt_main.by_city ORDER BY 1' 'dbt_main.daily ORDER BY 1' 'dbt_main.upserts ORDER BY 1' \
  'dbt_main.merged ORDER BY 1' 'dbt_main.paid ORDER BY 1' 'dbt_main.sealed ORDER BY 1'; do
  echo "-- $what"
  psql -XAt "$url" -c "SELECT * FROM $what"
done
psql -XAt "$url" -c "SELECT id, city, dbt_valid_to IS NULL FROM dbt_snapshots.customers_history ORDER BY id, dbt_valid_from, 2" \
  -c "SELECT id, city, dbt_valid_to IS NULL FROM dbt_snapshots.customers_checked ORDER BY id, dbt_valid_from, 2"
psql -XAt "$url" -c "SELECT schemaname, tablename, regexp_replace(indexdef, '"?[0-9a-f]{32}"?', 'HASH') FROM pg_indexes WHERE schemaname LIKE 'dbt%' ORDER BY 1, 2, 3" \
  -c "SELECT table_schema, table_name, grantee, privilege_type FROM information_schema.role_table_grants WHERE table_schema LIKE 'dbt%' AND grantee = 'dbt_reader' ORDER BY 1, 2, 4"
