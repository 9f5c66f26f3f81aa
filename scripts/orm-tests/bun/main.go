// Bun, goose, golang-migrate, pgx's COPY and lib/pq's listener: each answer on a line.
//
// usage: bun DSN
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratepg "github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

type Author struct {
	bun.BaseModel `bun:"table:bn_authors,alias:a"`
	ID            int64             `bun:"id,pk,autoincrement"`
	Name          string            `bun:"name,notnull,unique"`
	Email         *string           `bun:",nullzero"`
	Tags          []string          `bun:",array"`
	Meta          map[string]string `bun:"type:jsonb"`
	Attrs         map[string]string `bun:"type:json"`
	Score         float64           `bun:"type:numeric(8,2),default:1.5"`
	Born          time.Time         `bun:"type:date,nullzero"`
	At            time.Time         `bun:",nullzero,notnull,default:current_timestamp"`
	Gone          time.Time         `bun:",soft_delete,nullzero"`
	Books         []*Book           `bun:"rel:has-many,join:id=author_id"`
}
type Book struct {
	bun.BaseModel `bun:"table:bn_books,alias:b"`
	ID            int64    `bun:",pk,autoincrement"`
	Title         string   `bun:",notnull"`
	AuthorID      int64    `bun:",notnull"`
	Author        *Author  `bun:"rel:belongs-to,join:author_id=id"`
	Genres        []*Genre `bun:"m2m:bn_book_genres,join:Book=Genre"`
	Raw           []byte
	Ranks         []int64 `bun:",array"`
}
type Genre struct {
	bun.BaseModel `bun:"table:bn_genres,alias:g"`
	Code          string `bun:",pk"`
}
type BookGenre struct {
	bun.BaseModel `bun:"table:bn_book_genres,alias:bg"`
	BookID        int64  `bun:",pk"`
	Book          *Book  `bun:"rel:belongs-to,join:book_id=id"`
	Code          string `bun:",pk"`
	Genre         *Genre `bun:"rel:belongs-to,join:code=code"`
}

func t(name string, f func() (any, error)) {
	r, err := f()
	if err != nil {
		var e pgdriver.Error
		var q *pq.Error
		text := err.Error()
		if errors.As(err, &e) {
			text = fmt.Sprintf("%s %s %s %s %s", e.Field('C'), e.Field('M'), e.Field('D'), e.Field('n'), e.Field('t'))
		} else if errors.As(err, &q) {
			text = fmt.Sprintf("%s %s %s %s", q.Code, q.Message, q.Detail, q.Constraint)
		}
		fmt.Println(name, "ERR", strings.ReplaceAll(text, "\n", " | "))
		return
	}
	b, _ := json.Marshal(r)
	s := string(b)
	if len(s) > 1200 {
		s = s[:1200]
	}
	fmt.Println(name, s)
}

func use(ctx context.Context, db *bun.DB) {
	db.RegisterModel((*BookGenre)(nil))
	for _, m := range []any{(*Author)(nil), (*Genre)(nil), (*Book)(nil), (*BookGenre)(nil)} {
		t(fmt.Sprintf("create %T", m), func() (any, error) {
			q := db.NewCreateTable().Model(m).IfNotExists().WithForeignKeys()
			fmt.Println(q.String())
			_, err := q.Exec(ctx)
			return nil, err
		})
	}
	t("index", func() (any, error) {
		_, err := db.NewCreateIndex().Model((*Book)(nil)).Index("bn_title").Column("title").Where("id > 0").IfNotExists().Exec(ctx)
		return nil, err
	})
	mail := "a@x"
	authors := []*Author{
		{Name: "Ann", Email: &mail, Tags: []string{"a b", `q"uo`, "{x,y}"}, Meta: map[string]string{"k": "v"}, Born: time.Date(1990, 2, 3, 0, 0, 0, 0, time.UTC)},
		{Name: "Bo", Tags: []string{}, Score: 7.25},
	}
	t("insert", func() (any, error) {
		_, err := db.NewInsert().Model(&authors).Exec(ctx)
		ids := []any{authors[0].ID, authors[1].ID, authors[0].Score, authors[1].Score, authors[0].At.IsZero()}
		return ids, err
	})
	t("duplicate", func() (any, error) {
		_, err := db.NewInsert().Model(&Author{Name: "Ann"}).Exec(ctx)
		return nil, err
	})
	t("upsert", func() (any, error) {
		a := &Author{Name: "Ann", Score: 9}
		_, err := db.NewInsert().Model(a).On("CONFLICT (name) DO UPDATE").Set("score = EXCLUDED.score + a.score").Returning("id, score").Exec(ctx)
		return []any{a.ID, a.Score}, err
	})
	books := []*Book{{Title: "One", AuthorID: 1, Raw: []byte{0, 255}, Ranks: []int64{3, 1}}, {Title: "Two", AuthorID: 1}, {Title: "Three", AuthorID: 2}}
	t("books", func() (any, error) {
		_, err := db.NewInsert().Model(&books).Exec(ctx)
		return len(books), err
	})
	t("dangling", func() (any, error) {
		_, err := db.NewInsert().Model(&Book{Title: "X", AuthorID: 99}).Exec(ctx)
		return nil, err
	})
	t("genres", func() (any, error) {
		_, err := db.NewInsert().Model(&[]*Genre{{Code: "sf"}, {Code: "hist"}}).Ignore().Exec(ctx)
		if err != nil {
			return nil, err
		}
		_, err = db.NewInsert().Model(&[]*BookGenre{{BookID: 1, Code: "sf"}, {BookID: 1, Code: "hist"}, {BookID: 2, Code: "sf"}}).Exec(ctx)
		return nil, err
	})
	t("relations", func() (any, error) {
		var all []*Author
		err := db.NewSelect().Model(&all).Relation("Books", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("b.id DESC") }).Relation("Books.Genres", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("g.code") }).Order("a.id").Scan(ctx)
		for _, a := range all {
			a.At = time.Time{}
		}
		return all, err
	})
	t("belongs", func() (any, error) {
		var all []*Book
		err := db.NewSelect().Model(&all).Relation("Author").Where("author.name = ?", "Ann").Order("b.id").Scan(ctx)
		for _, b := range all {
			if b.Author != nil {
				b.Author.At = time.Time{}
			}
		}
		return all, err
	})
	t("in", func() (any, error) {
		var names []string
		err := db.NewSelect().Model((*Author)(nil)).Column("name").Where("id IN (?)", bun.In([]int{1, 2})).Where("? = ANY(tags) OR tags IS NOT NULL", "a b").OrderExpr("name").Scan(ctx, &names)
		return names, err
	})
	t("count", func() (any, error) {
		var some []*Book
		n, err := db.NewSelect().Model(&some).Limit(1).Offset(1).Order("id").ScanAndCount(ctx)
		return []any{n, len(some)}, err
	})
	t("exists", func() (any, error) { return db.NewSelect().Model((*Book)(nil)).Where("title = ?", "One").Exists(ctx) })
	t("group", func() (any, error) {
		var rows []struct {
			Name string
			N    int
			Last time.Time
		}
		err := db.NewSelect().TableExpr("bn_books AS b").ColumnExpr("a.name, count(*) AS n").Join("JOIN bn_authors AS a ON a.id = b.author_id").GroupExpr("a.name").Having("count(*) >= ?", 1).OrderExpr("n DESC").Scan(ctx, &rows)
		return rows, err
	})
	t("with", func() (any, error) {
		var n int
		sub := db.NewSelect().Model((*Book)(nil)).Column("author_id").Distinct()
		err := db.NewSelect().With("x", sub).TableExpr("x").ColumnExpr("count(*)").Scan(ctx, &n)
		return n, err
	})
	t("bulk", func() (any, error) {
		books[0].Title, books[1].Title = "Uno", "Due"
		q := db.NewUpdate().Model(&books).Column("title").Bulk()
		fmt.Println(q.String())
		r, err := q.Exec(ctx)
		if err != nil {
			return nil, err
		}
		return r.RowsAffected()
	})
	t("values", func() (any, error) {
		values := db.NewValues(&books).Column("id", "title").WithOrder()
		var all []*Book
		err := db.NewSelect().With("v", values).Model(&all).Where("b.id = v.id").TableExpr("v").OrderExpr("v._order DESC").Scan(ctx)
		return len(all), err
	})
	t("returning", func() (any, error) {
		var titles []string
		_, err := db.NewUpdate().Model((*Book)(nil)).TableExpr("bn_authors AS a").Set("title = b.title || ?", "!").Where("a.id = b.author_id").Where("a.name = ?", "Ann").Returning("b.title").Exec(ctx, &titles)
		sort.Strings(titles)
		return titles, err
	})
	t("soft", func() (any, error) {
		_, err := db.NewDelete().Model((*Author)(nil)).Where("name = ?", "Bo").Exec(ctx)
		if err != nil {
			return nil, err
		}
		a, err := db.NewSelect().Model((*Author)(nil)).Count(ctx)
		if err != nil {
			return nil, err
		}
		b, err := db.NewSelect().Model((*Author)(nil)).WhereAllWithDeleted().Count(ctx)
		return []int64{int64(a), int64(b)}, err
	})
	t("transaction", func() (any, error) {
		err := db.RunInTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.NewDelete().Model((*Book)(nil)).Where("true").Exec(ctx); err != nil {
				return err
			}
			inner, err := tx.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, _ = inner.ExecContext(ctx, "select 1/0")
			if err := inner.Rollback(); err != nil {
				return err
			}
			return errors.New("no")
		})
		n, _ := db.NewSelect().Model((*Book)(nil)).Count(ctx)
		return []any{err.Error(), n}, nil
	})
	t("columns", func() (any, error) {
		_, err := db.NewAddColumn().Model((*Book)(nil)).ColumnExpr("pages int default 7").IfNotExists().Exec(ctx)
		if err != nil {
			return nil, err
		}
		_, err = db.NewDropColumn().Model((*Book)(nil)).Column("pages").Exec(ctx)
		return nil, err
	})
	t("copy", func() (any, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		_, err = pgdriver.CopyFrom(ctx, conn, strings.NewReader("sf2\nhist2\n"), "COPY bn_genres FROM STDIN")
		if err != nil {
			return nil, err
		}
		var out strings.Builder
		_, err = pgdriver.CopyTo(ctx, conn, &out, "COPY (SELECT code FROM bn_genres ORDER BY 1) TO STDOUT WITH CSV HEADER")
		return out.String(), err
	})
}

var files = fstest.MapFS{
	"m/00001_one.sql":   {Data: []byte("-- +goose Up\nCREATE TABLE gs_a (id serial PRIMARY KEY, name text NOT NULL);\nCREATE INDEX gs_n ON gs_a (name);\n-- +goose Down\nDROP TABLE gs_a;\n")},
	"m/00002_two.sql":   {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY gs_i ON gs_a (lower(name));\nALTER TABLE gs_a ADD COLUMN at timestamptz DEFAULT now();\n-- +goose Down\nALTER TABLE gs_a DROP COLUMN at;\nDROP INDEX CONCURRENTLY gs_i;\n")},
	"m/00003_three.sql": {Data: []byte("-- +goose Up\nCREATE TYPE gs_mood AS ENUM ('a', 'b');\nALTER TABLE gs_a ADD COLUMN m gs_mood DEFAULT 'a';\n-- +goose StatementBegin\nCREATE FUNCTION gs_f(x int) RETURNS int LANGUAGE sql AS $$\n  SELECT x + 1;\n$$;\n-- +goose StatementEnd\n-- +goose Down\nDROP FUNCTION gs_f; ALTER TABLE gs_a DROP COLUMN m; DROP TYPE gs_mood;\n")},
	"n/1_a.up.sql":      {Data: []byte("BEGIN; CREATE TABLE mg_a (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, j jsonb); INSERT INTO mg_a (j) VALUES ('{}'); COMMIT;")},
	"n/1_a.down.sql":    {Data: []byte("DROP TABLE IF EXISTS mg_a;")},
	"n/2_b.up.sql":      {Data: []byte("ALTER TABLE mg_a ADD COLUMN n int NOT NULL DEFAULT 0; CREATE VIEW mg_v AS SELECT * FROM mg_a; COMMENT ON TABLE mg_a IS 'x';")},
	"n/2_b.down.sql":    {Data: []byte("DROP VIEW mg_v; ALTER TABLE mg_a DROP COLUMN n;")},
	"n/3_c.up.sql":      {Data: []byte("CREATE TABLE mg_c (id int REFERENCES mg_a);\nSELECT nothing FROM nowhere;")},
	"n/3_c.down.sql":    {Data: []byte("DROP TABLE mg_c;")},
}

func gooses(db *sql.DB) {
	goose.SetBaseFS(files)
	goose.SetLogger(goose.NopLogger())
	_ = goose.SetDialect("postgres")
	t("goose up", func() (any, error) { return nil, goose.Up(db, "m") })
	t("goose version", func() (any, error) { return goose.GetDBVersion(db) })
	t("goose down", func() (any, error) { return nil, goose.Down(db, "m") })
	t("goose redo", func() (any, error) { return nil, goose.Redo(db, "m") })
	t("goose reset", func() (any, error) { return nil, goose.Reset(db, "m") })
}

func migrates(name, url string) {
	t(name, func() (any, error) {
		src, err := iofs.New(files, "n")
		if err != nil {
			return nil, err
		}
		m, err := migrate.NewWithSourceInstance("iofs", src, url)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		out := []any{}
		say := func(err error) {
			v, dirty, verr := m.Version()
			out = append(out, fmt.Sprint(err), v, dirty, fmt.Sprint(verr))
		}
		say(m.Steps(2))
		say(m.Up())
		say(m.Up())
		say(m.Force(2))
		say(m.Migrate(1))
		say(m.Down())
		say(m.Drop())
		return out, nil
	})
}

func main() {
	ctx := context.Background()
	dsn := os.Args[1]
	db := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(dsn))), pgdialect.New())
	use(ctx, db)
	std, _ := sql.Open("pgx", dsn)
	gooses(std)
	_ = migratepg.Postgres{}
	_ = migratepgx.Postgres{}
	migrates("migrate pq", dsn)
	migrates("migrate pgx", strings.Replace(dsn, "postgresql://", "pgx5://", 1))
	t("pgx copy", func() (any, error) {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return nil, err
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, "create temp table pc (a int, b text, c timestamptz, d numeric, e text[], f jsonb)"); err != nil {
			return nil, err
		}
		n, err := c.CopyFrom(ctx, pgx.Identifier{"pc"}, []string{"a", "b", "e", "f"}, pgx.CopyFromRows([][]any{{1, "x", []string{"p", "q"}, map[string]any{"k": 1}}, {2, nil, nil, nil}}))
		return n, err
	})
	t("pq listener", func() (any, error) {
		l := pq.NewListener(dsn, time.Second, time.Second, nil)
		defer l.Close()
		if err := l.Listen("pqc"); err != nil {
			return nil, err
		}
		if _, err := std.Exec("select pg_notify('pqc', 'there')"); err != nil {
			return nil, err
		}
		select {
		case n := <-l.Notify:
			return []any{n.Channel, n.Extra}, nil
		case <-time.After(5 * time.Second):
			return nil, errors.New("nothing came")
		}
	})
	t("pq copy", func() (any, error) {
		d, err := sql.Open("postgres", dsn)
		if err != nil {
			return nil, err
		}
		tx, err := d.Begin()
		if err != nil {
			return nil, err
		}
		if _, err := tx.Exec("create temp table pqt (a int, b text)"); err != nil {
			return nil, err
		}
		s, err := tx.Prepare(pq.CopyIn("pqt", "a", "b"))
		if err != nil {
			return nil, err
		}
		for i := 0; i < 5; i++ {
			if _, err := s.Exec(i, fmt.Sprint("r", i)); err != nil {
				return nil, err
			}
		}
		if _, err := s.Exec(); err != nil {
			return nil, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
		var n int
		err = tx.QueryRow("select count(*) from pqt").Scan(&n)
		return n, err
	})
}
