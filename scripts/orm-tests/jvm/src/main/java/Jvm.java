// jOOQ, MyBatis, JDBI, R2DBC and Spring Data: tables, rows, queries, transactions, metadata,
// each answer on a line.
// usage: java Jvm HOST PORT DATABASE USER
import java.sql.*;
import java.util.*;
import java.math.*;
import java.time.*;
import org.jooq.*;
import org.jooq.impl.*;
import static org.jooq.impl.DSL.*;
import org.apache.ibatis.session.*;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import io.r2dbc.spi.*;
import reactor.core.publisher.*;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.data.r2dbc.core.R2dbcEntityTemplate;
import org.springframework.data.relational.core.query.Criteria;
import org.springframework.data.annotation.Id;
import org.jdbi.v3.core.*;

/** See the first lines of the file. */
public class Jvm {
  interface Step { Object run() throws Throwable; }
  static void step(String n, Step s) {
    try { System.out.println(n + ": " + s.run()); }
    catch (Throwable t) { Throwable c = t;
      while (c.getCause()!=null && c.getCause()!=c) c = c.getCause();
      String m = String.valueOf(c.getMessage()); System.out.println(n + " FAILED: "
        + c.getClass().getSimpleName()+" "+ m.split("\n")[0]
        + (c instanceof SQLException ? " "+((SQLException)c).getSQLState():"")); }
  }
  public record Author(@Id Long id, String name, Integer born) {}
  public static class Row { public Long id; public String name; public Integer born;
    public String toString(){return id+"/"+name+"/"+born;} }
  public interface M {
    @org.apache.ibatis.annotations.Select("select id, name, born from author where id = #{id}")
    Row one(long id);
    @org.apache.ibatis.annotations.Select("select id, name, born from author order by id")
    List<Row> all();
    @org.apache.ibatis.annotations.Insert("insert into author(name, born) values (#{name}, #{born})")
    @org.apache.ibatis.annotations.Options(useGeneratedKeys = true, keyProperty="id", keyColumn="id") int add(Row r);
    @org.apache.ibatis.annotations.Update("update author set born = #{born} where id = #{id}")
    int set(Row r);
    @org.apache.ibatis.annotations.Select("<script>select id,name,born from author where id in "
      + "<foreach collection='ids' item='i' open='(' separator=',' close=')'>#{i}</foreach> order by id</script>")
    List<Row> in(@org.apache.ibatis.annotations.Param("ids") List<Long> ids);
    @org.apache.ibatis.annotations.Delete("delete from author where name like #{n} || '%'")
    int del(String n);
  }
  public static void main(String[] a) throws Throwable {
    String host = a[0], port = a[1], db = a[2], user = a[3];
    String url = "jdbc:postgresql://" + host + ":" + port + "/" + db + "?user=" + user;
    java.sql.Connection c = DriverManager.getConnection(url);
    java.sql.Statement st = c.createStatement();
    DSLContext d = DSL.using(c, SQLDialect.POSTGRES);
    step("jooq-create",
      () -> d.createTableIfNotExists("author").column("id", SQLDataType.BIGINT.identity(true))
        .column("name", SQLDataType.VARCHAR(40).nullable(false)).column("born",
        SQLDataType.INTEGER).constraints(constraint("pk_author").primaryKey("id"),
        constraint("ck").check(field("born", Integer.class).gt(1000))).execute());
    step("jooq-create2",
      () -> d.createTable("book").column("id", SQLDataType.BIGINT.identity(true))
        .column("author_id", SQLDataType.BIGINT.nullable(false)).column("title", SQLDataType.CLOB)
        .column("price", SQLDataType.NUMERIC(10,2)).column("tags", SQLDataType.VARCHAR.array())
        .column("doc", SQLDataType.JSONB).column("at",
        SQLDataType.TIMESTAMPWITHTIMEZONE.defaultValue(currentOffsetDateTime()))
        .constraints(constraint("pk_book").primaryKey("id"), constraint("fk")
        .foreignKey("author_id").references("author","id").onDeleteCascade()).execute());
    step("jooq-index", () -> d.createIndex("ix_book").on("book","author_id","title").execute());
    Table<?> A = table(name("author")), B = table(name("book"));
    Field<Long> aid = field(name("author","id"), Long.class),
      bid=field(name("book","id"),Long.class), baid=field(name("book","author_id"),Long.class);
    Field<String> an = field(name("author","name"), String.class),
      bt=field(name("book","title"),String.class);
    Field<Integer> born=field(name("author","born"),Integer.class);
    Field<BigDecimal> price=field(name("book","price"),BigDecimal.class);
    step("jooq-insert",
      () -> d.insertInto(A, field(name("name"),String.class), field(name("born"),Integer.class))
        .values("Ann",1970).values("Bob",1980).values("Cid",null)
        .returning(field(name("id"),Long.class), field(name("name"),String.class))
        .fetch().format());
    step("jooq-insert2",
      () -> d.insertInto(B, field(name("author_id"),Long.class), field(name("title"),String.class),
        field(name("price"),BigDecimal.class), field(name("tags"),String[].class),
        field(name("doc"),JSONB.class))
        .values(1L,"x",new BigDecimal("1.50"),new String[]{"a","b"},JSONB.valueOf("{\"k\": [1,2]}"))
          .values(1L,"y",new BigDecimal("2.25"),new String[]{},null)
          .values(2L,"z",null,null,JSONB.valueOf("[]")).execute());
    step("jooq-join",
      () -> d.select(an, count(), sum(price), listAgg(bt, ",").withinGroupOrderBy(bt),
        arrayAgg(bid).orderBy(bid.desc())).from(A).leftJoin(B).on(aid.eq(baid)).groupBy(an)
        .orderBy(an).fetch().format());
    step("jooq-multiset",
      () -> d.select(an, multiset(select(bt, price).from(B).where(baid.eq(aid)).orderBy(bid)))
        .from(A).orderBy(aid).fetch().format());
    step("jooq-window",
      () -> d.select(bt, rowNumber().over(partitionBy(baid).orderBy(price.desc().nullsLast())),
        sum(price).over().orderBy(bid).rowsBetweenUnboundedPreceding().andCurrentRow(), lag(bt)
        .over().orderBy(bid)).from(B).orderBy(bid).fetch().format());
    step("jooq-with",
      () -> d.with("q").as(select(aid.as("i"), an.as("n")).from(A)).select().from(table(name("q")))
        .orderBy(1).limit(2).offset(1).fetch().format());
    step("jooq-recursive",
      () -> d.withRecursive("t","n")
        .as(select(inline(1)).unionAll(select(field(name("t","n"),Integer.class).plus(1))
        .from(table(name("t")))
        .where(field(name("t","n"),Integer.class).lt(4)))).selectFrom(table(name("t")))
        .fetch().format());
    step("jooq-upsert",
      () -> d.insertInto(A, field(name("id"),Long.class), field(name("name"),String.class))
        .values(1L,"Anna").onConflict(field(name("id"))).doUpdate()
        .set(field(name("name"),String.class), excluded(field(name("name"),String.class)))
        .execute());
    step("jooq-merge",
      () -> d.mergeInto(A).using(selectOne()).on(aid.eq(77L))
        .whenNotMatchedThenInsert(field(name("name"),String.class)).values("Mer").execute());
    step("jooq-forupdate",
      () -> d.select(an).from(A).where(aid.eq(1L)).forUpdate().skipLocked().fetch().format());
    step("jooq-json",
      () -> d.select(jsonbArrayAgg(jsonObject(key("n").value(an))).orderBy(aid)).from(A)
        .fetch().format());
    step("jooq-json-value",
      () -> d.select(jsonbValue(field(name("doc"),JSONB.class), "$.k[0]")).from(B).orderBy(bid)
        .fetch().format());
    step("jooq-date",
      () -> d.select(extract(timestamp("2020-02-03 04:05:06"), DatePart.MONTH),
        trunc(timestamp("2020-02-03 04:05:06"), DatePart.DAY), dateAdd(java
        .sql.Date.valueOf("2020-01-31"), 1, DatePart.MONTH),
        timestampDiff(timestamp("2020-02-03 04:05:06"),timestamp("2020-02-01 00:00:00")))
        .fetch().format());
    step("jooq-text",
      () -> d.select(lpad(inline("x"),5,"-"), position("hello","l"),
        regexpReplaceAll(inline("aXbX"),"X","y"), md5("a"),
        translate(inline("abc"),inline("ab"),inline("xy")), splitPart(inline("a,b"),",",2),
        overlay(inline("abcdef"),inline("ZZ"),inline(2))).fetch().format());
    step("jooq-num",
      () -> d.select(round(inline(2.567),2), ceil(inline(1.2)), power(2,10), bitAnd(6,3), shl(1,4),
        ln(2), greatest(inline(1),inline(5)),
        widthBucket(inline(5.0),inline(0.0),inline(10.0),inline(5))).fetch().format());
    step("jooq-array",
      () -> d.select(array(1,2,3), cardinality(array(1,2)), arrayGet(array(7,8),2),
        field("1 = any({0})",Boolean.class, val(new Integer[]{1,2}))).fetch().format());
    step("jooq-values",
      () -> d.select().from(values(row(1,"a"),row(2,"b")).as("v","i","t")).orderBy(1)
        .fetch().format());
    step("jooq-rollup",
      () -> d.select(an, count(), grouping(an)).from(A).groupBy(rollup(an)).orderBy(an
        .asc().nullsLast()).fetch().format());
    step("jooq-pivot",
      () -> d.select(an).from(A)
        .where(an.likeIgnoreCase("a%").or(born.between(1975,1985)).or(aid.in(select(baid)
        .from(B)))).orderBy(aid).fetch().format());
    step("jooq-meta",
      () -> { StringBuilder b=new StringBuilder();
        for (Table<?> t : d.meta().filterSchemas(s->s.getName().equals("public"))
          .getTables()) if (t.getName().matches("author|book")) { b.append(t.getName());
          for (Field<?> f : t.fields()) b.append(" ").append(f.getName()).append(":")
          .append(f.getDataType().getTypeName()).append(f.getDataType().nullable()?"":"!")
          .append(f.getDataType().identity()?"#":""); b.append(t.getKeys())
          .append(t.getReferences()).append(t.getIndexes()).append(";"); } return b; });
    step("jooq-ddl",
      () -> d.meta().filterSchemas(s->s.getName().equals("public")).filterTables(t->t.getName()
        .matches("author|book")).ddl());
    step("jooq-alter",
      () -> d.alterTable("book").add("isbn", SQLDataType.CHAR(13)).execute()
        + d.alterTable("book").alter("title").setNotNull().execute()
        + d.alterTable("book").renameColumn("isbn").to("isbn13").execute()
        + d.alterTable("book").dropColumn("isbn13").execute());
    step("jooq-view",
      () -> d.createOrReplaceView("vb").as(select(bt, an).from(B).join(A).on(aid.eq(baid)))
        .execute());
    step("jooq-seq",
      () -> { d.createSequence("sq").startWith(5).incrementBy(2).execute();
        return d.nextval("sq")+","+d.nextval("sq")+","+d.currval("sq"); });
    step("jooq-tx",
      () -> { try { d.transaction(x -> { x.dsl().deleteFrom(A).execute();
        x.dsl().transaction(y -> { throw new RuntimeException("in"); }); });
        } catch (RuntimeException e) {} return d.fetchCount(A); });
    step("jooq-batch",
      () -> Arrays.toString(d.batch(d.insertInto(A, field(name("name"),String.class))
        .values((String)null)).bind("b1").bind("b2").execute()));
    step("jooq-lazy",
      () -> { c.setAutoCommit(false); int n=0; try (Cursor<?> cu = d.select()
        .from(generateSeries(1,1000)).fetchSize(7).fetchLazy()) { while (cu.hasNext()) { cu
        .fetchNext(); n++; } } c.commit(); c.setAutoCommit(true); return n; });
    step("jooq-error",
      () -> d.insertInto(A, field(name("id"),Long.class), field(name("name"),String.class))
        .values(1L,"dup").execute());
    step("jooq-error2",
      () -> d.insertInto(A, field(name("name"),String.class), field(name("born"),Integer.class))
        .values("q",5).execute());
    step("jooq-distinct-on",
      () -> d.select(baid, bt).distinctOn(baid).from(B).orderBy(baid, bt.desc()).fetch().format());
    step("jooq-lateral",
      () -> d.select(an, field(name("l","title"))).from(A).crossApply(select(bt).from(B)
        .where(baid.eq(aid)).orderBy(bt.desc()).limit(1).asTable("l")).orderBy(aid)
        .fetch().format());
    step("jooq-quantile",
      () -> d.select(percentileCont(0.5).withinGroupOrderBy(price), percentileDisc(0.5)
        .withinGroupOrderBy(price), mode(price), median(price), stddevPop(price),
        boolAnd(price.gt(BigDecimal.ONE))).from(B).fetch().format());
    // MyBatis
    org.apache.ibatis.session.Configuration conf = new org.apache.ibatis.session.Configuration(new Environment("e",
      new JdbcTransactionFactory(),
      new org.apache.ibatis.datasource.unpooled.UnpooledDataSource("org.postgresql.Driver", url,
      null, null)));
    conf.addMapper(M.class);
    SqlSessionFactory f = new SqlSessionFactoryBuilder().build(conf);
    try (SqlSession s = f.openSession()) {
      M m = s.getMapper(M.class);
      step("mybatis-add",
        () -> { Row r = new Row(); r.name="my"; r.born=1999; int n = m.add(r);
          return n+" "+(r.id!=null); });
      step("mybatis-set", () -> { Row r = m.one(1); r.born=1971; return m.set(r); });
      step("mybatis-all", () -> m.all());
      step("mybatis-in", () -> m.in(List.of(1L,2L,99L)));
      step("mybatis-del", () -> m.del("my"));
      s.commit();
    }
    try (SqlSession s = f.openSession(ExecutorType.BATCH)) { M m = s.getMapper(M.class);
      step("mybatis-batch",
      () -> { for (int i=0;i<3;i++) { Row r=new Row(); r.name="bt"+i;
        m.add(r);} return s.flushStatements().size(); }); s.rollback(); }
    // JDBI
    Jdbi j = Jdbi.create(url).installPlugin(new org.jdbi.v3.postgres.PostgresPlugin());
    step("jdbi",
      () -> j.withHandle(h -> h.createQuery("select name from author where id = any(:ids) order by id")
        .bindArray("ids", Long.class, 1L, 2L).mapTo(String.class).list()));
    step("jdbi-uuid",
      () -> j.withHandle(h -> { h
        .execute("create table ju(id uuid primary key default gen_random_uuid(), d date, t timestamptz, i interval, p inet, h text[])");
          h.createUpdate("insert into ju(d,t,i,p,h) values (:d,:t,:i,:p,:h)").bind("d",
          LocalDate.of(2020,1,2)).bind("t", OffsetDateTime.parse("2020-01-02T03:04:05Z")).bind("i",
          Duration.ofHours(26)).bind("p", java.net.InetAddress.getByName("10.0.0.1")).bindArray("h",
          String.class, "x","y").execute(); return h.createQuery("select d,t,i,p,h from ju")
          .mapToMap().one().toString().replaceAll("@[0-9a-f]+",""); }));
    step("jdbi-batch",
      () -> j.withHandle(h -> { var b = h.prepareBatch("insert into author(name) values (?)"); b
        .bind(0,"k1").add(); b.bind(0,"k2").add(); return b.executeAndReturnGeneratedKeys("id")
        .mapTo(Long.class).list().size(); }));
    step("jdbi-tx",
      () -> j.inTransaction(org.jdbi.v3.core.transaction.TransactionIsolationLevel.REPEATABLE_READ,
        h -> h.createQuery("select current_setting('transaction_isolation')").mapTo(String.class)
        .one()));
    // R2DBC
    io.r2dbc.spi.ConnectionFactory cf = ConnectionFactories.get("r2dbc:postgresql://"+user+":x@"+host+":"+port+"/"+db);
    DatabaseClient dc = DatabaseClient.create(cf);
    step("r2dbc-select",
      () -> dc.sql("select id, name, born from author where id < $1 order by id").bind("$1", 3L)
        .map((r,md)-> r.get("id",Long.class)+"/"+r.get("name",String.class)+"/"+r.get("born",Integer.class))
          .all().collectList().block());
    step("r2dbc-named",
      () -> dc.sql("select :x::int + 1 as y, :t::text as t, :u::uuid as u, :d::date as d, :z::timestamptz as z, :n::numeric as n, :b::bytea as b")
        .bind("x",1).bind("t","q").bind("u",UUID.fromString("00000000-0000-0000-0000-000000000001"))
        .bind("d",LocalDate.of(2020,1,1)).bind("z",OffsetDateTime.parse("2020-01-01T00:00:00Z"))
        .bind("n",new BigDecimal("1.5")).bind("b",java.nio.ByteBuffer.wrap(new byte[]{1,2})).fetch()
        .one().block().toString());
    step("r2dbc-types",
      () -> dc.sql("select 1::int2 a, 2::int8 b, 1.5::float4 c, 2.5::float8 d, true e, 'x'::char(3) f, '10:11'::time g, '1 day'::interval h, '{\"a\":1}'::json i, array[1,2] j, '10.0.0.1'::inet k, now() is null l, array['x','y'] m, '2020-01-01'::timestamp n, 'a'::name o, 5::oid p, point(1,2) q")
        .fetch().one().block().toString().replaceAll("ByteArrayInput\\{[^}]*\\}","JSON")
        .replaceAll("@[0-9a-f]+","").replaceAll("\\[L?[A-Za-z.]+;?(?=[,}])","ARR"));
    step("r2dbc-insert",
      () -> dc.sql("insert into author(name,born) values ($1,$2)").filter(s->s
        .returnGeneratedValues("id","name")).bind("$1","R2").bindNull("$2",Integer.class)
        .map((r,md)->r.get("name",String.class)).one().block());
    R2dbcEntityTemplate t = new R2dbcEntityTemplate(cf);
    step("spring-insert",
      () -> { Author x = t.insert(new Author(null,"Spr",1990)).block(); return x.id()!=null; });
    step("spring-select",
      () -> t.select(Author.class)
        .matching(org.springframework.data.relational.core.query.Query.query(Criteria.where("name")
        .like("A%").or("born").greaterThan(1975))
        .sort(org.springframework.data.domain.Sort.by("id"))).all().map(x->x.name()).collectList()
        .block());
    step("spring-update",
      () -> t.update(org.springframework.data.relational.core.query.Query.query(Criteria
        .where("name").is("Spr")),
        org.springframework.data.relational.core.query.Update.update("born",1991), Author.class)
        .block());
    step("spring-count",
      () -> t.count(org.springframework.data.relational.core.query.Query.query(Criteria
        .where("born").isNull()), Author.class).block());
    step("spring-delete",
      () -> t.delete(org.springframework.data.relational.core.query.Query.query(Criteria
        .where("name").in("Spr","R2")), Author.class).block());
    step("r2dbc-tx",
      () -> { var tm = new org.springframework.r2dbc.connection.R2dbcTransactionManager(cf);
        var op = org.springframework.transaction.reactive.TransactionalOperator.create(tm);
        return dc.sql("delete from author").fetch().rowsUpdated()
        .then(Mono.error(new RuntimeException("back"))).as(op::transactional)
        .onErrorReturn("rolled").block() + " " + dc.sql("select count(*) from author")
        .map((r,m)->r.get(0,Long.class)).one().block(); });
    step("r2dbc-error",
      () -> dc.sql("insert into author(id,name) values (1,'d')").fetch().rowsUpdated().block());
    step("r2dbc-error2", () -> dc.sql("select * from nowhere").fetch().all().collectList().block());
    step("r2dbc-notify",
      () -> { var con = (io.r2dbc.postgresql.api.PostgresqlConnection) Mono.from(cf.create())
        .block(); con.createStatement("listen ch").execute().flatMap(r->r.getRowsUpdated())
        .blockLast(); var got = con.getNotifications().next()
        .map(n->n.getName()+n.getParameter()).toFuture(); st.execute("notify ch, 'pay'");
        String g = got.get(5, java.util.concurrent.TimeUnit.SECONDS); con.close().block(); return g;
        });
    step("r2dbc-copy",
      () -> { var con = (io.r2dbc.postgresql.api.PostgresqlConnection) Mono.from(cf.create())
        .block(); io.netty.buffer.ByteBuf buf = io.netty.buffer.Unpooled.copiedBuffer("cp1\t1\ncp2\t\\N\n".replace("\t1\n","\t1901\n")
          .getBytes()); Object r = con.copyIn("copy author(name,born) from stdin").from(buf).build()
          .block(); con.close().block(); return r; });
    step("r2dbc-fetch",
      () -> { var con = Mono.from(cf.create()).block(); Long n = Flux
        .from(con.createStatement("select * from generate_series(1,500) g").fetchSize(50)
        .execute()).flatMap(r->r.map((x,m)->x.get(0,Integer.class))).count().block(); Mono
        .from(con.close()).block(); return n; });
    c.close(); System.exit(0);
  }
}
