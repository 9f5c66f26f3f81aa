// Hibernate and Flyway: a schema created, updated and validated, entities, HQL, JDBC's metadata,
// migrations, each answer on a line.
// usage: java Hib JDBC-URL
import jakarta.persistence.*;
import java.math.*;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.hibernate.*;
import org.hibernate.annotations.*;
import org.hibernate.cfg.*;
import org.hibernate.type.SqlTypes;

public class Hib {

    enum Kind {
        A,
        B,
        C,
    }

    @Embeddable
    public static class Addr {

        public String street;
        public String city;
    }

    @Entity(name = "Author")
    @jakarta.persistence.Table(
        name = "h_author",
        indexes = @jakarta.persistence.Index(columnList = "born,name")
    )
    public static class Author {

        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE)
        public Long id;

        @Column(length = 40, unique = true, nullable = false)
        public String name;

        @Enumerated(EnumType.STRING)
        public Kind kind;

        @Enumerated
        public Kind ord;

        public LocalDate born;
        public Instant at;
        public OffsetDateTime odt;
        public LocalTime tm;

        @Column(precision = 10, scale = 2)
        public BigDecimal n;

        public UUID u;

        @JdbcTypeCode(SqlTypes.JSON)
        public Map<String, Object> j;

        public String[] tags;
        public byte[] b;
        public Duration dur;

        @jakarta.persistence.Version
        public int ver;

        @Embedded
        public Addr addr;

        @OneToMany(
            mappedBy = "author",
            cascade = jakarta.persistence.CascadeType.ALL,
            orphanRemoval = true
        )
        @jakarta.persistence.OrderBy("title")
        public List<Book> books = new ArrayList<>();

        @ElementCollection
        @CollectionTable(name = "h_nick")
        public Set<String> nicks = new HashSet<>();

        @CreationTimestamp
        public LocalDateTime created;
    }

    @Entity(name = "Book")
    @jakarta.persistence.Table(
        name = "h_book",
        uniqueConstraints = @UniqueConstraint(columnNames = { "title", "author_id" })
    )
    @Inheritance(strategy = InheritanceType.JOINED)
    @org.hibernate.annotations.Check(constraints = "pages >= 0")
    public static class Book {

        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        public Long id;

        public String title;
        public int pages;

        @ManyToOne(fetch = FetchType.LAZY)
        @OnDelete(action = OnDeleteAction.CASCADE)
        public Author author;

        @ManyToMany
        @JoinTable(name = "h_bt")
        public Set<Tag> tags = new HashSet<>();
    }

    @Entity(name = "EBook")
    @jakarta.persistence.Table(name = "h_ebook")
    public static class EBook extends Book {

        @Column(columnDefinition = "text")
        public String url;

        public String lob;
    }

    @Entity(name = "Tag")
    @jakarta.persistence.Table(name = "h_tag")
    public static class Tag {

        @Id
        public String label;
    }

    interface F {
        Object go() throws Exception;
    }

    static void t(String n, F f) {
        try {
            System.out.println(n + " " + f.go());
        } catch (Throwable e) {
            Throwable c = e;
            while (c.getCause() != null && !(c instanceof SQLException)) c = c.getCause();
            System.out.println(
                n +
                    " ERR " +
                    c.getClass().getSimpleName() +
                    " " +
                    String.valueOf(c.getMessage()).split("\n")[0]
            );
        }
    }

    static SessionFactory sf(String url, String how) {
        Configuration c = new Configuration();
        c.setProperty("hibernate.connection.url", url)
            .setProperty("hibernate.hbm2ddl.auto", how)
            .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
            .setProperty("hibernate.jdbc.batch_size", "20")
            .setProperty("hibernate.order_inserts", "true");
        if (System.getenv("SHOW") != null) c.setProperty("hibernate.show_sql", "true");
        for (Class<?> k : new Class<?>[] { Author.class, Book.class, EBook.class, Tag.class })
            c.addAnnotatedClass(k);
        return c.buildSessionFactory();
    }

    public static void main(String[] a) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        String url = a[0];
        t("create", () -> {
            sf(url, "create").close();
            return 1;
        });
        t("update", () -> {
            sf(url, "update").close();
            return 1;
        });
        t("validate", () -> {
            sf(url, "validate").close();
            return 1;
        });
        SessionFactory f = sf(url, "update");
        t("ins", () ->
            f.fromTransaction(s -> {
                Author x = new Author();
                x.name = "a";
                x.kind = Kind.B;
                x.ord = Kind.C;
                x.born = LocalDate.of(2020, 1, 2);
                x.at = Instant.EPOCH;
                x.odt = OffsetDateTime.of(2020, 1, 1, 1, 1, 1, 0, ZoneOffset.ofHours(2));
                x.tm = LocalTime.of(10, 11, 12);
                x.n = new BigDecimal("1.5");
                x.u = new UUID(1, 2);
                x.j = Map.of("k", List.of(1));
                x.tags = new String[] { "p", "q" };
                x.b = new byte[] { 1, 2 };
                x.dur = Duration.ofHours(5);
                x.addr = new Addr();
                x.addr.city = "c";
                x.nicks.add("n1");
                x.nicks.add("n2");
                Tag g = new Tag();
                g.label = "g";
                s.persist(g);
                for (int i = 0; i < 30; i++) {
                    Book b = i % 3 == 0 ? new EBook() : new Book();
                    b.title = "t" + i;
                    b.pages = i;
                    b.author = x;
                    b.tags.add(g);
                    if (b instanceof EBook e) {
                        e.url = "u";
                        e.lob = "lob";
                    }
                    x.books.add(b);
                }
                s.persist(x);
                Author y = new Author();
                y.name = "b";
                s.persist(y);
                return x.id;
            })
        );
        t("get", () ->
            f.fromTransaction(s -> {
                Author x = s.find(Author.class, 1L);
                return (
                    x.name +
                    x.kind +
                    x.ord +
                    x.born +
                    x.at +
                    x.odt.toInstant() +
                    x.tm +
                    x.n +
                    x.u +
                    x.j +
                    Arrays.toString(x.tags) +
                    Arrays.toString(x.b) +
                    x.dur +
                    x.ver +
                    x.addr.city +
                    new TreeSet<>(x.nicks) +
                    x.books.size()
                );
            })
        );
        t("hql", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "select a.name, count(b), sum(b.pages) from Author a left join a.books b group by a.id order by a.id",
                        Object[].class
                    )
                    .list()
                    .stream()
                    .map(Arrays::toString)
                    .toList()
            )
        );
        t("poly", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "from Book b where b.pages between 3 and 9 order by b.pages",
                        Book.class
                    )
                    .list()
                    .stream()
                    .map(b -> b.getClass().getSimpleName() + b.title)
                    .toList()
            )
        );
        t("fetch", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "select distinct a from Author a join fetch a.books b join fetch b.tags where a.name like 'a%'",
                        Author.class
                    )
                    .getSingleResult()
                    .books.size()
            )
        );
        t("page", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery("from Book order by id", Book.class)
                    .setFirstResult(5)
                    .setMaxResults(3)
                    .list()
                    .stream()
                    .map(b -> b.title)
                    .toList()
            )
        );
        t("crit", () ->
            f.fromTransaction(s -> {
                var cb = s.getCriteriaBuilder();
                var q = cb.createQuery(Long.class);
                var r = q.from(Book.class);
                q.select(cb.count(r)).where(
                    cb.or(cb.gt(r.get("pages"), 20), cb.like(cb.lower(r.get("title")), "t1%"))
                );
                return s.createQuery(q).getSingleResult();
            })
        );
        t("win", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "select b.title, row_number() over (partition by b.author.id order by b.pages desc) from Book b order by b.pages desc limit 2",
                        Object[].class
                    )
                    .list()
                    .stream()
                    .map(Arrays::toString)
                    .toList()
            )
        );
        t("cte", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "with w as (select b.pages p from Book b where b.pages > 25) select sum(w.p) from w w",
                        Long.class
                    )
                    .getSingleResult()
            )
        );
        t("arr", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "select a.name from Author a where array_contains(a.tags,'p')",
                        String.class
                    )
                    .list()
            )
        );
        t("jsonf", () ->
            f.fromTransaction(s ->
                s
                    .createNativeQuery(
                        "select name from h_author where j @> '{\"k\":[1]}'",
                        String.class
                    )
                    .list()
            )
        );
        t("date", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery(
                        "select year(a.born), extract(month from a.born), a.born + 3 day from Author a where a.born is not null",
                        Object[].class
                    )
                    .list()
                    .stream()
                    .map(Arrays::toString)
                    .toList()
            )
        );
        t("upd", () ->
            f.fromTransaction(s ->
                s
                    .createMutationQuery(
                        "update Book set pages = pages + 1 where author.name = 'a'"
                    )
                    .executeUpdate()
            )
        );
        t("updj", () ->
            f.fromTransaction(s ->
                s
                    .createMutationQuery("update EBook set url = 'x', pages = 5 where pages > 20")
                    .executeUpdate()
            )
        );
        t("insel", () ->
            f.fromTransaction(s ->
                s
                    .createMutationQuery(
                        "insert into Tag(label) select a.name from Author a on conflict do nothing"
                    )
                    .executeUpdate()
            )
        );
        t("delj", () ->
            f.fromTransaction(s ->
                s.createMutationQuery("delete from EBook where pages = 5").executeUpdate()
            )
        );
        t("lock", () ->
            f.fromTransaction(s ->
                s
                    .createSelectionQuery("from Author order by id", Author.class)
                    .setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED)
                    .list()
                    .size()
            )
        );
        t("optl", () ->
            f.fromTransaction(s -> {
                Author x = s.find(Author.class, 1L, LockModeType.OPTIMISTIC_FORCE_INCREMENT);
                s.flush();
                return x.ver;
            })
        );
        t("dup", () ->
            f.fromTransaction(s -> {
                Author y = new Author();
                y.name = "a";
                s.persist(y);
                s.flush();
                return 0;
            })
        );
        t("orphan", () ->
            f.fromTransaction(s -> {
                Author x = s.find(Author.class, 1L);
                x.books.remove(0);
                s.flush();
                return s
                    .createSelectionQuery("select count(*) from Book", Long.class)
                    .getSingleResult();
            })
        );
        t("scroll", () ->
            f.fromTransaction(s -> {
                int n = 0;
                try (
                    var r = s
                        .createSelectionQuery("from Book", Book.class)
                        .setFetchSize(4)
                        .scroll(ScrollMode.FORWARD_ONLY)
                ) {
                    while (r.next()) n++;
                }
                return n;
            })
        );
        t("upsert", () -> {
            try (StatelessSession s = f.openStatelessSession()) {
                s.beginTransaction();
                Tag g = new Tag();
                g.label = "g";
                s.upsert(g);
                g.label = "h";
                s.upsert(g);
                s.getTransaction().commit();
                return 1;
            }
        });
        t("remove", () ->
            f.fromTransaction(s -> {
                s.remove(s.find(Author.class, 1L));
                s.flush();
                return s
                    .createSelectionQuery("select count(*) from Book", Long.class)
                    .getSingleResult();
            })
        );
        t("schema", () -> {
            f.close();
            sf(url, "validate").close();
            return 1;
        });
        t("meta", () -> {
            try (Connection c = DriverManager.getConnection(url)) {
                var m = c.getMetaData();
                StringBuilder o = new StringBuilder();
                for (var r = m.getColumns(null, "public", "h_author", null); r.next(); ) o.append(
                    r.getString("COLUMN_NAME") +
                        ":" +
                        r.getString("TYPE_NAME") +
                        ":" +
                        r.getInt("DATA_TYPE") +
                        ":" +
                        r.getInt("COLUMN_SIZE") +
                        ":" +
                        r.getString("COLUMN_DEF") +
                        ":" +
                        r.getString("IS_AUTOINCREMENT") +
                        " "
                );
                for (var r = m.getImportedKeys(null, "public", "h_book"); r.next(); ) o.append(
                    r.getString("PKTABLE_NAME") +
                        r.getString("FKCOLUMN_NAME") +
                        r.getInt("DELETE_RULE")
                );
                for (
                    var r = m.getIndexInfo(null, "public", "h_author", false, true);
                    r.next();

                ) o.append(r.getBoolean("NON_UNIQUE") + r.getString("COLUMN_NAME"));
                return o;
            }
        });
        org.flywaydb.core.api.configuration.FluentConfiguration fc =
            org.flywaydb.core.Flyway.configure()
                .dataSource(url, "", "")
                .schemas("fly")
                .locations("filesystem:fly");
        java.nio.file.Files.createDirectories(java.nio.file.Path.of("fly"));
        java.nio.file.Files.writeString(
            java.nio.file.Path.of("fly/V1__a.sql"),
            "create table ft (id int primary key, n varchar(5));\ninsert into ft values (1,'a');\ndo $$ begin if not exists (select from pg_class where relname='fi') then create index fi on ft(n); end if; end $$;\n"
        );
        java.nio.file.Files.writeString(
            java.nio.file.Path.of("fly/V2__b.sql"),
            "alter table ft alter id type bigint, add column x timestamptz default now();\nalter table ft drop constraint ft_pkey, add primary key (n);\n"
        );
        t("fly", () -> {
            var w = fc.load();
            w.clean();
            return 0;
        });
        t("fly2", () -> fc.cleanDisabled(false).load().clean().schemasCleaned);
        t("fly3", () -> fc.load().migrate().migrationsExecuted);
        t("fly4", () -> fc.load().migrate().migrationsExecuted);
        t("fly5", () ->
            Arrays.stream(fc.load().info().all())
                .map(i -> i.getVersion() + "" + i.getState())
                .toList()
        );
        t("fly6", () -> {
            fc.load().validate();
            return 1;
        });
    }
}
