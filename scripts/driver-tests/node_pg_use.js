// node-pg as an application uses it. usage: node node_pg_use.js URL
const { Client, Pool, types } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const { from: copyFrom, to: copyTo } = require('pg-copy-streams');
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
const assert = require('node:assert');
const url = process.argv[2];

const steps = {
  async types(c) {
    for (const [name, value] of [['int4', 7], ['int8', '4611686018427387904'], ['float8', 0.1],
      ['numeric', '1.50'], ['text', "é'\\"], ['bool', true], ['bytea', Buffer.from([0, 255])],
      ['jsonb', { a: [1, null] }], ['int4[]', [1, null, 3]], ['text[]', ['a b', null, '"']],
      ['uuid', '00000000-0000-0000-0000-000000000005']]) {
      const { rows } = await c.query(`select $1::${name} as v`, [value]);
      assert.deepEqual(rows[0].v, value, name);
    }
    const at = new Date('2024-02-29T01:02:03.456Z');
    const { rows } = await c.query('select $1::timestamptz as v, $2::int as n', [at, null]);
    assert.equal(rows[0].v.getTime(), at.getTime());
    assert.equal(rows[0].n, null);
  },
  async statements(c) {
    await c.query('drop table if exists npg; create table npg (id int primary key, v text)');
    for (let i = 0; i < 50; i++) {
      await c.query({ name: 'ins', text: 'insert into npg values ($1, $2)', values: [i, `v${i}`] });
    }
    const r = await c.query('update npg set v = upper(v) where id < 5 returning id, v');
    assert.equal(r.rowCount, 5);
    assert.deepEqual(r.fields.map((f) => f.dataTypeID), [23, 25]);
    const many = await c.query('select 1 as a; select 2 as b');
    assert.equal(many[1].rows[0].b, 2);
    const array = await c.query({ text: 'select id, v from npg where id = 1', rowMode: 'array' });
    assert.deepEqual(array.rows, [[1, 'V1']]);
    const all = await Promise.all([...Array(30).keys()].map((i) =>
      c.query('select v from npg where id = $1', [i + 10])));
    assert.equal(all[3].rows[0].v, 'v13');
  },
  async errors(c) {
    await assert.rejects(c.query('insert into npg values (1)'),
      (e) => e.code === '23505' && e.constraint === 'npg_pkey' && e.table === 'npg');
    await assert.rejects(c.query('select nope'), (e) => e.code === '42703');
    await assert.rejects(c.query('select $1::int', ['x']), (e) => e.code === '22P02');
    await c.query('select 1');
  },
  async cursors(c) {
    const cursor = c.query(new Cursor('select id from npg order by id'));
    assert.equal((await cursor.read(7)).length, 7);
    assert.equal((await cursor.read(100)).length, 43);
    await cursor.close();
    let n = 0;
    for await (const row of c.query(new QueryStream('select * from npg', [], { batchSize: 9 }))) n += row.id >= 0;
    assert.equal(n, 50);
    const early = c.query(new Cursor('select id from npg order by id'));
    await early.read(3);
    await early.close();
    assert.equal((await c.query('select 5 as a')).rows[0].a, 5);
  },
  async copies(c) {
    await c.query('drop table if exists npgc; create table npgc (a int, b text)');
    const lines = Readable.from((function* () { for (let i = 0; i < 2000; i++) yield `${i}\tt${i}\n`; })());
    await pipeline(lines, c.query(copyFrom('copy npgc from stdin')));
    let text = '';
    for await (const piece of c.query(copyTo('copy npgc to stdout'))) text += piece;
    assert.equal(text.split('\n').length, 2001);
    const bad = Readable.from(['x\ty\n']);
    await assert.rejects(pipeline(bad, c.query(copyFrom('copy npgc from stdin'))));
    assert.equal((await c.query('select count(*)::int as n from npgc')).rows[0].n, 2000);
  },
  async transactions(c) {
    for (const level of ['serializable', 'repeatable read', 'read committed']) {
      await c.query(`begin isolation level ${level}`);
      await c.query('savepoint s');
      await assert.rejects(c.query('select 1/0'));
      await assert.rejects(c.query('select 1'), (e) => e.code === '25P02');
      await c.query('rollback to s');
      await c.query("update npg set v = 'x' where id = 9");
      await c.query('commit');
    }
  },
  async pools() {
    const pool = new Pool({ connectionString: url, max: 5 });
    const got = await Promise.all([...Array(60).keys()].map((i) => pool.query('select $1::int as i', [i])));
    assert.equal(got[59].rows[0].i, 59);
    await pool.end();
  },
  async notices(c) {
    const seen = [];
    c.on('notice', (n) => seen.push(n.code));
    await c.query('drop table if exists nothing_here');
    assert.deepEqual(seen, ['00000']);
    const slow = new Client({ connectionString: url, query_timeout: 300, statement_timeout: 200 });
    await slow.connect();
    await assert.rejects(slow.query('select count(*) from generate_series(1, 10000) a, generate_series(1, 1000000) b'));
    await slow.end();
  },
};

(async () => {
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    const c = new Client(url);
    c.on('error', (e) => console.log('connection:', e.message));
    await c.connect();
    try {
      await step(c);
    } catch (e) {
      failed++;
      console.log('node-pg', name, 'FAILED:', e.code ?? '', e.message.split('\n').slice(0, 6).join(' '));
    }
    await c.end();
  }
  console.log(`node-pg: ${Object.keys(steps).length} steps, ${failed} failed`);
  process.exit(failed ? 1 : 0);
})();
