// GORM: AutoMigrate with changes, queries, its migrator, each answer on a line.
//
// usage: gorm DSN
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"gorm.io/datatypes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"os"
	"sort"
	"time"
)

type Company struct {
	ID    uint
	Name  string `gorm:"size:40;uniqueIndex"`
	Users []User `gorm:"constraint:OnDelete:CASCADE"`
}
type User struct {
	gorm.Model
	Name      string  `gorm:"size:20;index:idx_na,priority:1"`
	Age       int     `gorm:"default:18;check:age > 3;index:idx_na,sort:desc,where:age > 5"`
	Email     *string `gorm:"unique"`
	CompanyID *uint
	Company   *Company
	Meta      datatypes.JSON
	Langs     []Lang `gorm:"many2many:user_langs"`
	Born      datatypes.Date
	Score     float64 `gorm:"type:decimal(8,2)"`
	B         []byte
	U         string    `gorm:"type:uuid;default:gen_random_uuid()"`
	At        time.Time `gorm:"precision:3"`
}
type Lang struct {
	Code string `gorm:"primaryKey;size:8"`
}

func (User) TableName() string { return "gusers" }

type User2 struct {
	gorm.Model
	Name      string  `gorm:"size:60;not null;index:idx_na,priority:1;comment:the name"`
	Age       int64   `gorm:"default:21;check:age > 3"`
	Email     *string `gorm:"unique;size:100"`
	CompanyID *uint
	Company   *Company
	Meta      datatypes.JSON
	Born      time.Time
	Score     float32 `gorm:"type:decimal(10,3)"`
	B         []byte
	U         string `gorm:"type:uuid;default:gen_random_uuid()"`
	At        time.Time
	Extra     string `gorm:"default:'x'"`
}

func (User2) TableName() string { return "gusers" }
func t(n string, f func() (any, error)) {
	r, e := f()
	if e != nil {
		fmt.Println(n, "ERR", e)
		return
	}
	b, _ := json.Marshal(r)
	if len(b) > 500 {
		b = b[:500]
	}
	fmt.Println(n, string(b))
}
func main() {
	lg := logger.Default.LogMode(logger.Silent)
	if len(os.Args) > 2 {
		lg = logger.Default.LogMode(logger.Info)
	}
	db, err := gorm.Open(postgres.New(postgres.Config{DSN: os.Args[1]}), &gorm.Config{Logger: lg, TranslateError: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := db.Migrator()
	t("drop", func() (any, error) { return 1, m.DropTable(&User{}, &Company{}, &Lang{}, "user_langs") })
	t("auto", func() (any, error) { return 1, db.AutoMigrate(&Company{}, &User{}, &Lang{}) })
	t("auto2", func() (any, error) { return 1, db.AutoMigrate(&Company{}, &User{}, &Lang{}) })
	e1 := "a@x"
	c := Company{Name: "c", Users: []User{{Name: "u1", Age: 30, Email: &e1, Meta: datatypes.JSON(`{"a":{"b":1}}`), Langs: []Lang{{"en"}, {"fr"}}, Born: datatypes.Date(time.Unix(0, 0)), Score: 1.25, B: []byte("zz"), At: time.Unix(5, 0)}, {Name: "u2"}}}
	t("create", func() (any, error) {
		r := db.Create(&c)
		return []any{c.ID, c.Users[0].ID, c.Users[1].Age, r.RowsAffected}, r.Error
	})
	t("find", func() (any, error) {
		var u []User
		r := db.Preload("Company").Preload("Langs").Order("id").Find(&u)
		out := []any{}
		for _, x := range u {
			out = append(out, x.Name, x.Age, x.Company.Name, len(x.Langs), string(x.Meta), x.Score)
		}
		return out, r.Error
	})
	t("joins", func() (any, error) {
		var u []User
		r := db.Joins("Company").Where("Company.name = ?", "c").Find(&u)
		return len(u), r.Error
	})
	t("json", func() (any, error) {
		var n int64
		r := db.Model(&User{}).Where(datatypes.JSONQuery("meta").HasKey("a", "b")).Count(&n)
		return n, r.Error
	})
	t("json2", func() (any, error) {
		var n int64
		r := db.Model(&User{}).Where(datatypes.JSONQuery("meta").Equals(1, "a", "b")).Count(&n)
		return n, r.Error
	})
	t("dup", func() (any, error) {
		r := db.Create(&Company{Name: "c"})
		return errors.Is(r.Error, gorm.ErrDuplicatedKey), nil
	})
	t("upsert", func() (any, error) {
		x := Company{Name: "c"}
		r := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&x)
		return x.ID, r.Error
	})
	t("foc", func() (any, error) {
		x := Company{}
		r := db.FirstOrCreate(&x, Company{Name: "d"})
		return x.ID > 0, r.Error
	})
	t("upd", func() (any, error) {
		var u []User
		r := db.Model(&u).Clauses(clause.Returning{Columns: []clause.Column{{Name: "age"}}}).Where("age > ?", 5).Update("age", gorm.Expr("age + ?", 1))
		return []any{r.RowsAffected, u[0].Age}, r.Error
	})
	t("batch", func() (any, error) {
		us := make([]User, 250)
		for i := range us {
			us[i].Name = fmt.Sprint("n", i)
		}
		r := db.CreateInBatches(us, 100)
		return r.RowsAffected, r.Error
	})
	t("fib", func() (any, error) {
		n := 0
		var u []User
		r := db.Where("name like ?", "n%").FindInBatches(&u, 90, func(tx *gorm.DB, b int) error { n += len(u); return nil })
		return n, r.Error
	})
	t("soft", func() (any, error) {
		r := db.Where("name = ?", "u2").Delete(&User{})
		var n int64
		db.Unscoped().Model(&User{}).Where("deleted_at is not null").Count(&n)
		return []any{r.RowsAffected, n}, r.Error
	})
	t("grp", func() (any, error) {
		var out []map[string]any
		r := db.Model(&User{}).Select("company_id, count(*) as c, avg(age)::float8 as a").Group("company_id").Having("count(*) > ?", 0).Order("c").Find(&out)
		return out, r.Error
	})
	t("tx", func() (any, error) {
		return 1, db.Transaction(func(x *gorm.DB) error {
			x.Create(&Lang{"de"})
			x.Transaction(func(y *gorm.DB) error { y.Create(&Lang{"de"}); return errors.New("x") })
			return x.Create(&Lang{"it"}).Error
		})
	})
	t("lock", func() (any, error) {
		var u User
		r := db.Clauses(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}).First(&u)
		return u.Name, r.Error
	})
	t("rows", func() (any, error) {
		rows, e := db.Model(&User{}).Rows()
		n := 0
		if e == nil {
			for rows.Next() {
				n++
			}
			rows.Close()
		}
		return n, e
	})
	t("sub", func() (any, error) {
		var n int64
		r := db.Model(&User{}).Where("company_id in (?)", db.Model(&Company{}).Select("id")).Count(&n)
		return n, r.Error
	})
	t("alter", func() (any, error) { return 1, db.AutoMigrate(&User2{}) })
	t("alter2", func() (any, error) { return 1, db.AutoMigrate(&User2{}) })
	t("cols", func() (any, error) {
		ct, e := m.ColumnTypes(&User2{})
		out := []any{}
		for _, c := range ct {
			ty, _ := c.ColumnType()
			d, _ := c.DefaultValue()
			nl, _ := c.Nullable()
			pk, _ := c.PrimaryKey()
			un, _ := c.Unique()
			l, _ := c.Length()
			p, s, _ := c.DecimalSize()
			cm, _ := c.Comment()
			ai, _ := c.AutoIncrement()
			out = append(out, []any{c.Name(), ty, d, nl, pk, un, l, p, s, cm, ai})
		}
		sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })
		return out, e
	})
	t("idx", func() (any, error) {
		ix, e := m.GetIndexes(&User2{})
		out := []any{}
		for _, i := range ix {
			u, _ := i.Unique()
			out = append(out, []any{i.Name(), i.Columns(), u, i.Option()})
		}
		sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })
		return out, e
	})
	t("tables", func() (any, error) {
		x, e := m.GetTables()
		n := 0
		for _, y := range x {
			if y == "gusers" || y == "companies" {
				n++
			}
		}
		return n, e
	})
	t("ren", func() (any, error) {
		return m.HasColumn(&User2{}, "extra"), m.RenameColumn(&User2{}, "extra", "extra2")
	})
	t("altcol", func() (any, error) { return 1, m.AlterColumn(&User2{}, "Age") })
	t("dropcol", func() (any, error) { return 1, m.DropColumn(&User2{}, "extra2") })
	t("dropidx", func() (any, error) { return m.HasIndex(&User2{}, "idx_na"), m.DropIndex(&User2{}, "idx_na") })
	t("dropcon", func() (any, error) {
		return m.HasConstraint(&User{}, "Company"), m.DropConstraint(&Company{}, "fk_companies_users")
	})
	t("view", func() (any, error) {
		return 1, m.CreateView("gv", gorm.ViewOption{Replace: true, Query: db.Model(&User2{}).Select("name")})
	})
	t("dview", func() (any, error) { return 1, m.DropView("gv") })
	t("rent", func() (any, error) {
		e := m.RenameTable("langs", "langs2")
		m.DropTable("langs2", "user_langs")
		return 1, e
	})
}
