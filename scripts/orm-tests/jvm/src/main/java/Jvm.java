import java.io.File;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.integration.commandline.CommandLineUtils;
import liquibase.resource.DirectoryResourceAccessor;
import org.jooq.DSLContext;
import org.jooq.JSONB;
import org.jooq.SQLDialect;
import org.jooq.codegen.GenerationTool;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.jooq.meta.jaxb.*;

/** Liquibase and jOOQ: what they make, read back and generate; a line for each step. */
public class Jvm {
  interface Step {
    Object run() throws Exception;
  }

  static void t(String name, Step step) {
    String text;
    try {
      text = String.valueOf(step.run());
    } catch (Throwable e) {
      Throwable root = e;
      while (root.getCause() != null) root = root.getCause();
      text = "ERR " + e.getClass().getSimpleName() + " " + root.getMessage();
    }
    text = text.replace("\n", " | ");
    System.out.println(name + " " + text.substring(0, Math.min(3000, text.length())));
  }

  static final String CHANGES =
      """
databaseChangeLog:
  - changeSet:
      id: 1
      author: a
      changes:
        - createTable:
            tableName: lb_people
            remarks: people
            columns:
              - column: {name: id, type: bigint, autoIncrement: true, constraints: {primaryKey: true, primaryKeyName: lb_people_pk}}
              - column: {name: name, type: varchar(50), remarks: the name, constraints: {nullable: false, unique: true, uniqueConstraintName: lb_name}}
              - column: {name: born, type: date}
              - column: {name: score, type: "decimal(10,2)", defaultValueNumeric: 1.5}
              - column: {name: active, type: boolean, defaultValueBoolean: true}
              - column: {name: at, type: timestamp with time zone, defaultValueComputed: current_timestamp}
              - column: {name: doc, type: jsonb}
              - column: {name: u, type: uuid, defaultValueComputed: gen_random_uuid()}
              - column: {name: b, type: blob}
              - column: {name: c, type: clob}
        - createSequence: {sequenceName: lb_seq, startValue: 5, incrementBy: 10}
  - changeSet:
      id: 2
      author: a
      changes:
        - createTable:
            tableName: lb_pets
            columns:
              - column: {name: id, type: int, constraints: {primaryKey: true}}
              - column: {name: owner_id, type: bigint, constraints: {nullable: false, foreignKeyName: lb_owner, references: lb_people(id), deleteCascade: true}}
              - column: {name: kind, type: char(3)}
        - createIndex: {indexName: lb_kind, tableName: lb_pets, columns: [{column: {name: kind, descending: true}}, {column: {name: owner_id}}]}
        - addColumn: {tableName: lb_pets, columns: [{column: {name: note, type: text, value: none}}]}
        - createView: {viewName: lb_v, selectQuery: "select p.name, q.kind from lb_people p join lb_pets q on q.owner_id = p.id"}
        - sql: {sql: "insert into lb_people (name) values ('Ann'), ('Bo'); create function lb_f(a int) returns int language sql as 'select a + 1'"}
      rollback:
        - sql: {sql: "drop function lb_f(int); drop view lb_v; drop table lb_pets; delete from lb_people"}
  - changeSet:
      id: 3
      author: a
      preConditions:
        - onFail: MARK_RAN
        - tableExists: {tableName: lb_pets}
        - columnExists: {tableName: lb_pets, columnName: kind}
        - indexExists: {indexName: lb_kind}
        - foreignKeyConstraintExists: {foreignKeyName: lb_owner}
        - viewExists: {viewName: lb_v}
        - sequenceExists: {sequenceName: lb_seq}
        - primaryKeyExists: {tableName: lb_people}
        - sqlCheck: {expectedResult: 2, sql: "select count(*) from lb_people"}
      changes:
        - modifyDataType: {tableName: lb_pets, columnName: kind, newDataType: varchar(20)}
        - renameColumn: {tableName: lb_pets, oldColumnName: note, newColumnName: remark}
        - addNotNullConstraint: {tableName: lb_pets, columnName: kind, defaultNullValue: x}
        - addUniqueConstraint: {tableName: lb_pets, columnNames: "owner_id, kind", constraintName: lb_u, deferrable: true}
        - addDefaultValue: {tableName: lb_pets, columnName: kind, defaultValue: dog}
        - setTableRemarks: {tableName: lb_pets, remarks: "it's pets"}
        - setColumnRemarks: {tableName: lb_pets, columnName: kind, remarks: "which"}
        - addLookupTable: {existingTableName: lb_pets, existingColumnName: kind, newTableName: lb_kinds, newColumnName: kind, constraintName: lb_lookup}
        - renameTable: {oldTableName: lb_kinds, newTableName: lb_sorts}
        - loadUpdateData: {tableName: lb_people, file: people.csv, primaryKey: id}
        - update: {tableName: lb_people, columns: [{column: {name: score, valueNumeric: 3}}], where: "name = 'Ann'"}
        - mergeColumns: {tableName: lb_people, column1Name: name, column2Name: c, joinString: "-", finalColumnName: both, finalColumnType: text}
""";

  static void liquibase(String url) throws Exception {
    Path dir = Files.createTempDirectory("lb");
    Files.writeString(dir.resolve("changes.yaml"), CHANGES);
    Files.writeString(dir.resolve("people.csv"), "id,name,born,active\n100,Eve,2001-02-03,false\n1,Anna,NULL,true\n");
    Connection c = DriverManager.getConnection(url);
    Database db = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
    Liquibase l = new Liquibase("changes.yaml", new DirectoryResourceAccessor(dir.toFile()), db);
    t("product", () -> db.getDatabaseProductName() + " " + db.getDatabaseMajorVersion() + " " + db.getDefaultSchemaName());
    t("validate", () -> { l.validate(); return "ok"; });
    t("sql", () -> { StringWriter w = new StringWriter(); l.update(new Contexts(), w); return w.toString().lines().filter(x -> x.matches("(CREATE|ALTER|COMMENT).*")).collect(Collectors.joining("; ")); });
    t("update", () -> { l.update(new Contexts(), new LabelExpression()); return l.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(); });
    t("again", () -> { l.update(new Contexts(), new LabelExpression()); return l.getChangeSetStatuses(new Contexts(), new LabelExpression()).stream().map(s -> s.getChangeSet().getId() + s.getWillRun()).toList(); });
    t("tag", () -> { l.tag("one"); return l.doesTagExist("one"); });
    t("locks", () -> l.listLocks().length);
    t("generate", () -> {
      Path out = dir.resolve("out.yaml");
      CommandLineUtils.doGenerateChangeLog(out.toString(), db, null, null, "tables,views,columns,indexes,foreignkeys,primarykeys,uniqueconstraints,sequences", "a", null, null, new DiffOutputControl(false, false, false, null));
      return Files.readString(out).lines().filter(x -> !x.contains("id: ") && !x.contains("author")).map(String::trim).collect(Collectors.joining(" "));
    });
    t("diff", () -> {
      liquibase.diff.DiffResult d = l.diff(db, db, liquibase.diff.compare.CompareControl.STANDARD);
      return d.areEqual() + " " + d.getMissingObjects().size();
    });
    t("rollback", () -> { l.rollback(1, ""); return "ok"; });
    t("drop", () -> { l.dropAll(); return "ok"; });
    c.close();
  }

  static void jooq(String url) throws Exception {
    Connection c = DriverManager.getConnection(url);
    c.createStatement().execute("""
        create schema jq; create type jq.mood as enum ('a', 'b'); create domain jq.price as numeric(10,2) check (value > 0);
        create type jq.pair as (x int, y text);
        create table jq.t (id serial primary key, name varchar(20) not null default 'x', m jq.mood, p jq.price, tags text[], doc jsonb, at timestamptz, u uuid, r int4range, c jq.pair, g int generated always as (id + 1) stored, unique (name, m), check (id > 0));
        create table jq.s (id bigint generated always as identity primary key, t_id int references jq.t on delete cascade, n numeric, i interval, b bytea);
        create index on jq.s (t_id desc); comment on table jq.t is 'things'; comment on column jq.t.name is 'called';
        create view jq.v as select t.id, t.name, count(s.*) n from jq.t left join jq.s on s.t_id = t.id group by t.id;
        create materialized view jq.mv as select m, count(*) from jq.t group by 1;
        create function jq.f(a int, b text default 'z') returns text language sql as 'select a || b';
        create function jq.rows(a int) returns table (x int, y text) language sql as 'select a, ''q'' union all select a + 1, null';
        create sequence jq.q start 7 increment 2 maxvalue 99 cycle""");
    Path out = Files.createTempDirectory("jooq");
    t("codegen", () -> {
      GenerationTool.generate(new Configuration().withLogging(Logging.ERROR)
          .withJdbc(new Jdbc().withUrl(url).withDriver("org.postgresql.Driver"))
          .withGenerator(new Generator()
              .withDatabase(new org.jooq.meta.jaxb.Database().withName("org.jooq.meta.postgres.PostgresDatabase").withInputSchema("jq").withIncludeSystemSequences(true).withIncludeCheckConstraints(true))
              .withGenerate(new Generate().withComments(true).withPojos(true).withIndexes(true))
              .withTarget(new Target().withPackageName("jq").withDirectory(out.toString()))));
      try (var s = Files.walk(out)) {
        return s.filter(Files::isRegularFile).map(p -> out.relativize(p).toString()).sorted().toList();
      }
    });
    try (var s = Files.walk(out)) {
      for (Path p : s.filter(Files::isRegularFile).sorted().toList()) {
        String body = Files.readString(p);
        body = body.lines().filter(x -> x.contains("createField") || x.contains("createIndex") || x.contains("createUniqueKey") || x.contains("createForeignKey") || x.contains("createSequence") || x.contains("createDomain") || x.contains("createCheck") || x.contains("Internal.") || x.contains("(\"") ).map(String::trim).collect(Collectors.joining(" "));
        String name = out.relativize(p).toString(), text = body;
        t(name, () -> text);
      }
    }
    DSLContext q = DSL.using(c, SQLDialect.POSTGRES);
    t("meta", () -> q.meta().filterSchemas(s -> s.getName().equals("jq")).ddl().toString());
    var id = DSL.field("id", SQLDataType.INTEGER);
    var name = DSL.field("name", SQLDataType.VARCHAR);
    var table = DSL.table(DSL.name("jq", "t"));
    t("insert", () -> q.insertInto(table).columns(name, DSL.field("doc", SQLDataType.JSONB), DSL.field("tags", SQLDataType.VARCHAR.getArrayDataType())).values("a", JSONB.jsonb("{\"k\": 1}"), new String[] {"x", "y,z"}).values("b", null, null).returningResult(id, name).fetch());
    t("upsert", () -> q.insertInto(table).columns(id, name).values(1, "aa").onConflict(id).doUpdate().set(name, DSL.concat(DSL.excluded(name), DSL.inline("!"))).returningResult(name).fetch());
    t("multiset", () -> q.select(name, DSL.multiset(DSL.select(DSL.field("n")).from("jq.s").where("s.t_id = t.id"))).from(table.as("t")).orderBy(id).fetch());
    t("window", () -> q.select(id, DSL.rowNumber().over(DSL.orderBy(id.desc())), DSL.sum(id).over(), DSL.lag(name).over(DSL.orderBy(id)), DSL.percentileCont(0.5).withinGroupOrderBy(id).over()).from(table).fetch());
    t("percentile", () -> q.select(DSL.percentileCont(0.5).withinGroupOrderBy(id), DSL.listAgg(name, ",").withinGroupOrderBy(id), DSL.arrayAgg(name).orderBy(id.desc()), DSL.jsonArrayAgg(name).orderBy(id), DSL.jsonObjectAgg(name, id)).from(table).fetch());
    t("merge", () -> q.mergeInto(table.as("t")).using(DSL.select(DSL.inline(1).as("k")).union(DSL.select(DSL.inline(50)))).on("t.id = k").whenMatchedThenUpdate().set(name, "m").whenNotMatchedThenInsert(name).values(DSL.inline("n")).execute());
    t("batch", () -> Arrays.toString(q.batch(q.insertInto(table).columns(name).values((String) null)).bind("p").bind("q").execute()));
    t("cursor", () -> { c.setAutoCommit(false); try (var cur = q.selectFrom(table).orderBy(id).fetchSize(1).fetchLazy()) { return cur.fetchNext(2).getValues("name"); } finally { c.commit(); c.setAutoCommit(true); } });
    t("routine", () -> q.select(DSL.function("jq.f", String.class, DSL.val(3), DSL.val("w"))).fetch());
    t("table function", () -> q.selectFrom("jq.rows({0})", DSL.val(4)).fetch());
    t("sequence", () -> List.of(q.nextval("jq.q"), q.currval("jq.q")));
    t("values", () -> q.selectFrom(DSL.values(DSL.row(1, "x"), DSL.row(2, null)).as("v", "a", "b")).where("(a, b) is distinct from (1, 'x')").fetch());
    t("unnest", () -> q.select().from(DSL.unnest(new Integer[] {3, 4}).as("u", "x")).fetch());
    t("recursive", () -> q.withRecursive("r", "n").as(DSL.select(DSL.inline(1)).unionAll(DSL.select(DSL.field("n", Integer.class).plus(1)).from("r").where("n < 4"))).select(DSL.sum(DSL.field("n", Integer.class))).from("r").fetch());
    t("json", () -> q.select(DSL.jsonObject(DSL.key("a").value(1), DSL.key("b").value(DSL.jsonArray(DSL.inline("x"), DSL.inline((String) null)))), DSL.jsonValue(DSL.val(JSONB.jsonb("{\"a\": 5}")), "$.a")).fetch());
    t("locks", () -> q.transactionResult(x -> DSL.using(x).selectFrom(table).orderBy(id).limit(1).forUpdate().skipLocked().fetch().size()));
    t("nested", () -> q.transactionResult(x -> { try { DSL.using(x).transaction(y -> { DSL.using(y).execute("select 1/0"); }); } catch (Exception e) { return DSL.using(x).fetchValue("select 'after'"); } return "?"; }));
    t("truncate", () -> q.truncate(table).restartIdentity().cascade().execute());
    c.close();
  }

  public static void main(String[] a) throws Exception {
    System.setProperty("org.jooq.no-logo", "true");
    System.setProperty("org.jooq.no-tips", "true");
    Logger.getLogger("").setLevel(Level.OFF);
    System.setErr(new java.io.PrintStream(java.io.OutputStream.nullOutputStream()));
    liquibase(a[0]);
    jooq(a[0]);
  }
}
