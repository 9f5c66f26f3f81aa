// Drives Pebble through the steps of bench-compare: one step per line on standard input, one line
// of numbers back. It mirrors ../src/run.rs and ../src/data.rs; see there for what steps mean.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var ctx = context.Background()

type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func (r *rng) below(n uint64) uint64 { return r.next() % n }

func key(n uint64) []byte {
	k := []byte("0000000000000000")
	binary.BigEndian.PutUint64(k, n)
	return k
}

type values struct {
	pool []byte
	len  int
}

func newValues(n int) *values {
	r := rng(99)
	half := (n + 1) / 2
	v := &values{len: n}
	for len(v.pool) < 1<<20 {
		start := len(v.pool)
		for i := 0; i < half; i++ {
			v.pool = append(v.pool, byte(r.next()))
		}
		v.pool = append(v.pool, v.pool[start:start+half]...)
	}
	return v
}

func (v *values) get(n uint64) []byte {
	step := 2 * ((v.len + 1) / 2)
	slots := (len(v.pool) - v.len) / step
	at := int(n%uint64(slots)) * step
	return v.pool[at : at+v.len]
}

type zipf struct {
	n, alpha, zetan, eta float64
	items                uint64
}

func newZipf(items uint64) *zipf {
	const theta = 0.99
	zeta := func(n uint64) float64 {
		sum := 0.0
		for i := uint64(1); i <= n; i++ {
			sum += 1 / math.Pow(float64(i), theta)
		}
		return sum
	}
	zetan, zeta2 := zeta(items), zeta(2)
	n := float64(items)
	eta := (1 - math.Pow(2/n, 1-theta)) / (1 - zeta2/zetan)
	return &zipf{n, 1 / (1 - theta), zetan, eta, items}
}

func (z *zipf) next(r *rng) uint64 {
	u := float64(r.next()>>11) / (1 << 53)
	uz := u * z.zetan
	rank := uint64(0)
	if uz >= 1 {
		if uz < 1+math.Pow(0.5, 0.99) {
			rank = 1
		} else {
			rank = uint64(z.n * math.Pow(z.eta*u-z.eta+1, z.alpha))
		}
	}
	h := rng(rank)
	return h.next() % z.items
}

// Pebble tells of opening and closing; nobody wants to know here.
type silent struct{}

func (silent) Infof(string, ...interface{})      {}
func (silent) Errorf(f string, a ...interface{}) { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (silent) Fatalf(f string, a ...interface{}) { check(fmt.Errorf(f, a...)) }

type step struct {
	name string
	args map[string]string
}

func parse(line string) step {
	words := strings.Fields(line)
	s := step{words[0], map[string]string{}}
	for _, word := range words[1:] {
		k, v, _ := strings.Cut(word, "=")
		s.args[k] = v
	}
	return s
}

func (s step) number(name string) uint64 {
	n, _ := strconv.ParseUint(s.args[name], 10, 64)
	return n
}

type report map[string]float64

func check(err error) {
	if err != nil {
		fmt.Printf("error %v\n", err)
		os.Exit(1)
	}
}

func cpuNanos() float64 {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func timed(ops uint64, work func()) report {
	cpu, start := cpuNanos(), time.Now()
	work()
	wall := float64(time.Since(start).Nanoseconds())
	cpu = cpuNanos() - cpu
	n := float64(max(ops, 1))
	return report{"ns": wall / n, "cpu_ns": cpu / n, "s": wall / 1e9}
}

type engine struct {
	db   *pebble.DB
	opts *pebble.Options
	dir  string
	user atomic.Uint64
}

func open(s step) *engine {
	opts := &pebble.Options{
		Cache:                       pebble.NewCache(int64(s.number("cache"))),
		MemTableSize:                s.number("memtable"),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                10000,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      silent{},
	}
	opts.CompactionConcurrencyRange = func() (int, int) { return 1, 2 }
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].BlockSize = 32 << 10
		opts.Levels[i].IndexBlockSize = 256 << 10
	}
	opts.FlushSplitBytes = 8 << 20
	opts.TargetFileSizes[0] = 2 << 20
	if base := s.number("base"); base > 0 {
		opts.LBaseMaxBytes = int64(base)
	}
	if file := int64(s.number("file")); file > 0 {
		opts.FlushSplitBytes, opts.TargetFileSizes[0] = file, file
	}
	opts.EnsureDefaults()
	db, err := pebble.Open(s.args["dir"], opts)
	check(err)
	return &engine{db: db, opts: opts, dir: s.args["dir"]}
}

func (e *engine) put(k, v []byte) { check(e.db.Set(k, v, pebble.NoSync)) }

func (e *engine) get(k []byte) bool {
	v, closer, err := e.db.Get(k)
	if err == pebble.ErrNotFound {
		return false
	}
	check(err)
	found := len(v) > 0
	check(closer.Close())
	return found
}

var sink atomic.Uint64

func (e *engine) scan(from []byte, rows int) int {
	it, err := e.db.NewIter(nil)
	check(err)
	seen, sum := 0, uint64(0)
	for ok := it.SeekGE(from); ok && seen < rows; ok = it.Next() {
		k, v := it.Key(), it.Value()
		sum += uint64(k[len(k)-1]) + uint64(v[0])
		seen++
	}
	check(it.Close())
	sink.Add(sum)
	return seen
}

func (e *engine) keys(from, to []byte) [][]byte {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	check(err)
	var keys [][]byte
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	check(it.Close())
	return keys
}

func (e *engine) stats() report {
	m := e.db.Metrics()
	r := report{"read_amp": float64(m.ReadAmp()), "l0_sublevels": float64(m.Levels[0].Sublevels)}
	written, size := 0.0, 0.0
	for i := range m.Levels {
		l := &m.Levels[i]
		r[fmt.Sprintf("l%d_files", i)] = float64(l.TablesCount)
		written += float64(l.TableBytesFlushed + l.TableBytesCompacted)
		size += float64(l.TablesSize)
	}
	r["bytes_written"] = written
	r["user_bytes"] = float64(m.WAL.BytesIn)
	r["sst_bytes"] = size
	return r
}

func (e *engine) quiet() bool {
	m := e.db.Metrics()
	return m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0
}

func besideWriter(e *engine, s step, work func()) {
	rate := s.number("writer")
	if rate == 0 {
		work()
		return
	}
	var stop atomic.Bool
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		v := newValues(int(max(s.number("value"), 1)))
		r := rng(s.number("seed") ^ 0xabcd)
		space, start, written := s.number("space"), time.Now(), uint64(0)
		for !stop.Load() {
			for i := 0; i < 16; i++ {
				n := r.below(space)
				e.put(key(n), v.get(n))
			}
			written += 16
			due := time.Duration(written * 1_000_000_000 / rate)
			if wait := due - time.Since(start); wait > 0 {
				time.Sleep(wait)
			}
		}
	}()
	work()
	stop.Store(true)
	done.Wait()
}

func onThreads(s step, each func(r rng)) {
	threads := max(s.number("threads"), 1)
	if threads == 1 {
		each(rng(s.number("seed")))
		return
	}
	var wg sync.WaitGroup
	for t := uint64(0); t < threads; t++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			each(rng(s.number("seed") + 7919*t))
		}()
	}
	wg.Wait()
}

func (e *engine) fill(s step) report {
	n, batch := s.number("n"), max(s.number("batch"), 1)
	space := max(s.number("space"), n)
	v, r := newValues(int(s.number("value"))), rng(s.number("seed"))
	random := s.args["order"] == "random"
	var slowest time.Duration
	out := timed(n, func() {
		for at := uint64(0); at < n; at += batch {
			b := e.db.NewBatch()
			for i := at; i < min(at+batch, n); i++ {
				k := i
				if random {
					k = r.below(space)
				}
				check(b.Set(key(k), v.get(k), nil))
			}
			start := time.Now()
			check(b.Commit(pebble.NoSync))
			slowest = max(slowest, time.Since(start))
		}
	})
	out["slowest_ms"] = float64(slowest.Microseconds()) / 1e3
	return out
}

func (e *engine) delrangeLoad(s step) report {
	keys, start, ranges, width := s.number("keys"), s.number("start"), s.number("ranges"), s.number("width")
	v, r, spots := newValues(int(s.number("value"))), rng(s.number("seed")), rng(s.number("seed")+1)
	every := (keys - start) / max(ranges, 1)
	return timed(keys, func() {
		for i := uint64(0); i < keys; i++ {
			n := r.below(keys)
			e.put(key(n), v.get(n))
			if i >= start && (i-start)%every == 0 {
				first := spots.below(keys - width)
				from, to := key(first), key(first+width)
				switch s.args["mode"] {
				case "range":
					check(e.db.DeleteRange(from, to, pebble.NoSync))
				case "points":
					for _, k := range e.keys(from, to) {
						check(e.db.Delete(k, pebble.NoSync))
					}
				}
			}
		}
	})
}

func (e *engine) gets(s step) (out report) {
	n, space := s.number("n"), s.number("space")
	var found atomic.Uint64
	besideWriter(e, s, func() {
		out = timed(n, func() {
			onThreads(s, func(r rng) {
				hits := uint64(0)
				for i := uint64(0); i < n/max(s.number("threads"), 1); i++ {
					if e.get(key(r.below(space))) {
						hits++
					}
				}
				found.Add(hits)
			})
		})
	})
	out["found"] = float64(found.Load())
	return out
}

func (e *engine) scans(s step) (out report) {
	n, space, length := s.number("n"), s.number("space"), int(s.number("len"))
	var rows atomic.Uint64
	besideWriter(e, s, func() {
		out = timed(n, func() {
			onThreads(s, func(r rng) {
				seen := 0
				for i := uint64(0); i < n/max(s.number("threads"), 1); i++ {
					seen += e.scan(key(r.below(space)), length)
				}
				rows.Add(uint64(seen))
			})
		})
	})
	out["rows"] = float64(rows.Load())
	return out
}

func (e *engine) alternate(s step) report {
	n, space := s.number("n"), s.number("space")
	r, found, done := rng(s.number("seed")), 0, 0.0
	limit := time.Duration(s.number("millis")) * time.Millisecond
	start := time.Now()
	out := timed(1, func() {
		for i := uint64(0); i < n; i++ {
			if i%16 == 0 && time.Since(start) > limit {
				break
			}
			done++
			var from, to uint64
			switch s.args["shape"] {
			case "nested":
				from, to = space/2-i, space/2+i+1
			case "wide":
				from = r.below(space)
				to = from + 1 + r.below(space-from)
			default:
				from = r.below(space - 10)
				to = from + 10
			}
			check(e.db.DeleteRange(key(from), key(to), pebble.NoSync))
			if e.get(key(r.below(space))) {
				found++
			}
		}
	})
	out["ns"] /= done
	out["cpu_ns"] /= done
	out["done"], out["found"] = done, float64(found)
	return out
}

func (e *engine) rangecost(s step) report {
	rows := s.number("rows")
	return timed(1, func() {
		check(e.db.DeleteRange(key(0), key(rows), pebble.NoSync))
		if e.get(key(rows / 2)) {
			check(fmt.Errorf("deleted rows are there"))
		}
	})
}

func (e *engine) build(numbers []uint64, v *values, name string) uint64 {
	path := filepath.Join(e.dir, name)
	f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	check(err)
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), e.opts.MakeWriterOptions(0, e.db.TableFormat()))
	user := uint64(0)
	for _, n := range numbers {
		k, val := key(n), v.get(n)
		check(w.Set(k, val))
		user += uint64(len(k) + len(val))
	}
	check(w.Close())
	return user
}

func (e *engine) ingest(s step) report {
	files, rows := s.number("files"), s.number("rows")
	v, r := newValues(int(s.number("value"))), rng(s.number("seed"))
	order := make([]uint64, files)
	for i := range order {
		order[i] = uint64(i)
	}
	for i := len(order) - 1; i >= 1; i-- {
		j := r.below(uint64(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
	space := files * rows
	var slowest time.Duration
	user, mostFiles, mostSub, mostAmp := uint64(0), 0.0, 0.0, 0.0
	for turn, file := range order {
		var numbers []uint64
		if turn%8 == 7 {
			for i := uint64(0); i < 8; i++ {
				numbers = append(numbers, i*(space/8)+r.below(9))
			}
			numbers = append(numbers, space-1)
		} else {
			first := min(file*rows, space-2*rows)
			for i := uint64(0); i < rows; i++ {
				numbers = append(numbers, first+2*i+(file&1))
			}
		}
		user += e.build(numbers, v, fmt.Sprintf("ingest-%d.sst", turn))
	}
	out := timed(files, func() {
		for turn := range order {
			start := time.Now()
			check(e.db.Ingest(ctx, []string{filepath.Join(e.dir, fmt.Sprintf("ingest-%d.sst", turn))}))
			slowest = max(slowest, time.Since(start))
			if turn%16 == 15 {
				m := e.stats()
				mostFiles = max(mostFiles, m["l0_files"])
				mostSub = max(mostSub, m["l0_sublevels"])
				mostAmp = max(mostAmp, m["read_amp"])
			}
		}
	})
	out["slowest_ms"] = float64(slowest.Microseconds()) / 1e3
	out["user_bytes"] = float64(user)
	out["most_l0_files"], out["most_sublevels"], out["most_read_amp"] = mostFiles, mostSub, mostAmp
	return out
}

func (e *engine) ycsb(s step) report {
	space, read := s.number("space"), s.number("read")
	v, z := newValues(int(s.number("value"))), newZipf(space)
	limit := time.Duration(s.number("millis")) * time.Millisecond
	point := s.number("point") == 1
	var ops, puts atomic.Uint64
	before := e.stats()
	start := time.Now()
	var stop atomic.Bool
	amps, samples, sampled := 0.0, 0.0, make(chan bool)
	go func() {
		for !stop.Load() {
			time.Sleep(250 * time.Millisecond)
			amps, samples = amps+e.stats()["read_amp"], samples+1
		}
		sampled <- true
	}()
	onThreads(s, func(r rng) {
		done, written := uint64(0), uint64(0)
		for time.Since(start) < limit {
			for i := 0; i < 64; i++ {
				var n uint64
				if s.args["dist"] == "uniform" {
					n = r.below(space)
				} else {
					n = z.next(&r)
				}
				if r.below(100) >= read {
					e.put(key(n), v.get(n))
					written++
				} else if point {
					e.get(key(n))
				} else {
					e.scan(key(n), 1)
				}
			}
			done += 64
		}
		ops.Add(done)
		puts.Add(written)
	})
	elapsed := time.Since(start).Seconds()
	stop.Store(true)
	<-sampled
	after := e.stats()
	n, user := float64(ops.Load()), float64(puts.Load()*(16+s.number("value")))
	written := after["bytes_written"] - before["bytes_written"]
	amp := 0.0
	if user > 0 {
		amp = written / user
	}
	return report{"ops_per_s": n / elapsed, "ops": n, "read_amp": amps / samples,
		"bytes_written": written, "write_amp": amp}
}

func (e *engine) leaveL0(s step) report {
	turns := 0
	for turns < 4 {
		s.args["order"] = "random"
		seed := s.number("seed")
		e.fill(s)
		s.args["seed"] = strconv.FormatUint(seed+1, 10)
		check(e.db.Flush())
		e.waitUntilQuiet()
		turns++
		if e.stats()["l0_files"] > 0 {
			break
		}
	}
	return report{"turns": float64(turns)}
}

func (e *engine) waitUntilQuiet() {
	for calm := 0; calm < 3; {
		if e.quiet() {
			calm++
		} else {
			calm = 0
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (e *engine) run(s step) report {
	switch s.name {
	case "fill":
		return e.fill(s)
	case "delrange_load":
		return e.delrangeLoad(s)
	case "gets":
		return e.gets(s)
	case "scans":
		return e.scans(s)
	case "alternate":
		return e.alternate(s)
	case "rangecost":
		return e.rangecost(s)
	case "ingest":
		return e.ingest(s)
	case "leave_l0":
		return e.leaveL0(s)
	case "ycsb":
		return e.ycsb(s)
	case "count":
		return report{"rows": float64(e.scan(nil, math.MaxInt))}
	case "flush":
		return timed(1, func() { check(e.db.Flush()) })
	case "compact":
		return timed(1, func() { check(e.db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, true)) })
	case "quiet":
		return timed(1, e.waitUntilQuiet)
	case "stats":
		return e.stats()
	}
	check(fmt.Errorf("unknown step %s", s.name))
	return nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	var e *engine
	for in.Scan() {
		s := parse(in.Text())
		r := report{}
		switch s.name {
		case "open":
			e = open(s)
		case "close":
			check(e.db.Close())
			e.opts.Cache.Unref()
			e = nil
		default:
			r = e.run(s)
		}
		fmt.Print("ok")
		for k, v := range r {
			fmt.Printf(" %s=%g", k, v)
		}
		fmt.Println()
	}
}
