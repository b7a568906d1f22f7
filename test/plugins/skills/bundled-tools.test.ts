import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { pdfOf } from './pdf.ts'
import { startSkills } from './stage.ts'

let test: PluginTest
let agent: string
beforeAll(async () => {
  test = await startSkills({ fetch: 'network', config: { outbound: { allow: ['127.0.0.2'] } } })
  agent = await test.spawn('worker', '[capabilities]\ntools = ["skill_*"]\nnetwork = ["127.0.0.2"]\n')
})
afterAll(() => test[Symbol.asyncDispose]())

/** Puts a file into the workspace of the agent. */
async function give(name: string, content: string | Uint8Array): Promise<void> {
  const file = join(test.home, 'data', 'workspaces', agent, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
}
/** What the model reads of calls that it makes in one turn: JSON, or the text of an error. */
async function use(skill: string, calls: readonly (readonly [tool: string, args: Json])[]): Promise<readonly Json[]> {
  const named = calls.map(([tool, args]) => ({ tool: `skill_${skill.replaceAll('-', '_')}_${tool}`, args }))
  await test.say(agent, `Use ${skill}`, { calls: named }, 'Done.')
  const turns: readonly Json[] = test.model.requests.at(-1)?.turns ?? []
  const texts = turns.slice(-calls.length).map(({ text }) => String(text))
  expect(texts).toHaveLength(calls.length)
  return texts.map((text) => {
    const json = /^\{.*\}$/m.exec(text)?.[0]
    return json === undefined ? text : JSON.parse(json)
  })
}

describe('tools of skills that come with svc, called in a turn', () => {
  it('pdf-reader: what a PDF is, and the text of its pages', async () => {
    await give('docs/tides.pdf', pdfOf(['Tides of the North Sea\nrise twice a day', 'A second page, on moons', '']))
    await give('notes.txt', 'no PDF')
    const path = 'docs/tides.pdf'
    const [info, text, found, beyond, other, missing] = await use('pdf-reader', [
      ['info', { path }],
      ['text', { path, pages: '1-2' }],
      ['text', { path, find: 'MOONS' }],
      ['text', { path, pages: '2-9' }],
      ['text', { path: 'notes.txt' }],
      ['info', { path: 'none.pdf' }],
    ])
    expect(info).toMatchObject({ pages: 3, title: 'Tides', created: '2026-01-31', encrypted: false, version: '1.4' })
    expect(text.pages).toEqual([
      { page: 1, text: 'Tides of the North Sea\nrise twice a day' },
      { page: 2, text: 'A second page, on moons' },
    ])
    expect(found.pages.map(({ page }: Json) => page)).toEqual([2])
    expect(beyond).toContain('there is no page 9; the PDF has 3')
    expect(other).toContain('the file is no PDF')
    expect(missing).toContain('No file "none.pdf"')
  })

  it('sqlite-expert: rows, plans, tables and checks of a copy that nothing writes to', async () => {
    const file = join(test.home, 'app.db')
    const db = new DatabaseSync(file)
    db.exec(`CREATE TABLE port (id INTEGER PRIMARY KEY, name TEXT NOT NULL, depth INT);
      CREATE INDEX port_name ON port (name);
      INSERT INTO port (name, depth) VALUES ('Husum', 9223372036854775807), ('Büsum', 4), ('Cuxhaven', NULL)`)
    db.close()
    await give('app.db', readFileSync(file))
    await give('empty.db', '')
    const path = 'app.db'
    const [rows, plan, schema, check, write, two, empty] = await use('sqlite-expert', [
      ['query', { path, sql: 'SELECT name, depth FROM port WHERE id < ? ORDER BY id', params: [3], limit: 1 }],
      ['query', { path, sql: 'SELECT * FROM port WHERE depth > 3', explain: true }],
      ['schema', { path }],
      ['check', { path }],
      ['query', { path, sql: 'DELETE FROM port RETURNING id' }],
      ['query', { path, sql: 'SELECT 1; DROP TABLE port' }],
      ['check', { path: 'empty.db' }],
    ])
    expect(rows).toMatchObject({ columns: ['name', 'depth'], rows: [['Husum', '9223372036854775807']], more: true })
    expect(plan.plan[0]).toEqual({ step: 'SCAN port', means: expect.stringContaining('reads all rows') })
    expect(schema.tables[0]).toMatchObject({ name: 'port', rows: 3, indexes: ['port_name'] })
    expect(check).toMatchObject({ ok: true, integrity: ['ok'] })
    expect(write).toContain('attempt to write a readonly database')
    expect(two).toContain('more than one statement')
    expect(empty).toContain('the file is empty')
  })

  it('sqlite-expert: reads what is in a write-ahead log only when it is given', async () => {
    const file = join(test.home, 'live.db')
    const db = new DatabaseSync(file)
    onTestFinished(() => db.close())
    db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (a); PRAGMA wal_checkpoint; INSERT INTO t VALUES (1)')
    await give('live.db', readFileSync(file))
    await give('live.db-wal', readFileSync(`${file}-wal`))
    const sql = 'SELECT count(*) FROM t'
    const [without, whole] = await use('sqlite-expert', [
      ['query', { path: 'live.db', sql }],
      ['query', { path: 'live.db', wal: 'live.db-wal', sql }],
    ])
    expect(without).toMatchObject({ rows: [[0]], notes: [expect.stringContaining('Give it as wal')] })
    expect(whole).toMatchObject({ rows: [[1]], notes: [] })
  })

  it('regex-expert: cases, groups, replacements, and a pattern that hangs', async () => {
    const [cases, hanging, explained, broken] = await use('regex-expert', [
      [
        'test',
        {
          pattern: '^(?<year>\\d{4})-(\\d\\d)$',
          should_match: ['2026-11', '26-11'],
          should_not_match: ['x'],
          replacement: '$2/$<year>',
        },
      ],
      ['test', { pattern: '^(a+)+$', texts: [`${'a'.repeat(60)}!`] }],
      ['explain', { pattern: '(?:x|(y))*[^a-z]{2,}?', flags: 'i' }],
      ['test', { pattern: '(', texts: ['a'] }],
    ])
    expect(cases).toMatchObject({ wrong: 1 })
    expect(cases.results[0]).toMatchObject({
      correct: true,
      replaced: '11/2026',
      matches: [{ named: { year: '2026' } }],
    })
    expect(hanging).toMatchObject({ hangs: 1, results: [{ outcome: expect.stringMatching(/^hangs: ended after/) }] })
    expect(explained).toMatchObject({ groups: 1 })
    expect(explained.parts.at(-1)).toMatchObject({
      part: '[^a-z]{2,}?',
      means: expect.stringContaining('2 times or more'),
    })
    expect(broken).toContain('Unterminated group')
  })

  it('openapi-expert: outline, one operation and faults of a document in YAML or JSON', async () => {
    const paths = `
  /tides/{port}:
    get:
      operationId: getTide
      summary: One tide
      responses:
        '200':
          description: The tide
          content: { application/json: { schema: { $ref: '#/components/schemas/Tide' } } }
    put: { operationId: getTide, security: [{ key: [] }], responses: { default: { $ref: '#/components/responses/Gone' } } }
`
    const schemas = '{ Tide: { type: object, properties: { next: { $ref: "#/components/schemas/Tide" } } } }'
    const top = 'openapi: 3.1.0\ninfo: { title: Tides, version: "1" }\n'
    await give('api.yaml', `${top}paths:${paths}components: { schemas: ${schemas} }\n`)
    await give('api.json', JSON.stringify({ openapi: '3.0.3', info: { title: 'T', version: '1' }, paths: {} }))
    await give('broken.yaml', `${top}paths: [\n`)
    const path = 'api.yaml'
    const [outline, operation, lint, json, unknown, broken] = await use('openapi-expert', [
      ['outline', { path, find: 'one tide' }],
      ['operation', { path, operation: 'GET /tides/{port}' }],
      ['lint', { path }],
      ['outline', { path: 'api.json' }],
      ['operation', { path, operation: 'deleteTide' }],
      ['lint', { path: 'broken.yaml' }],
    ])
    expect(outline).toMatchObject({ version: '3.1.0', schemas: ['Tide'], operations_found: 1, operations_total: 2 })
    const schema = operation.responses['200'].content['application/json'].schema
    expect(schema).toEqual({ type: 'object', properties: { next: { $ref: '#/components/schemas/Tide' } } })
    const messages = lint.findings.map(({ severity, at, message }: Json) => `${severity} ${at}: ${message}`)
    expect(messages).toEqual(
      expect.arrayContaining([
        'error PUT /tides/{port}: operationId "getTide" is also at GET /tides/{port}',
        'error GET /tides/{port}: path parameter "port" is not declared',
        'error PUT /tides/{port}: there is no security scheme "key"',
        expect.stringMatching(/^error #\/paths\/.*: #\/components\/responses\/Gone leads nowhere$/),
      ]),
    )
    expect(json).toMatchObject({ version: '3.0.3', operations: [] })
    expect(unknown).toContain('there is no operation "deleteTide"')
    expect(broken).toMatch(/the file cannot be read at line \d/)
  })

  it('data-analyst: profile, groups and correlations of a table', async () => {
    const rows = [
      'id;day;land;sum',
      '1;2026-01-03;DE;1.000,5',
      '2;2026-01-09;DE;"20,5"',
      '3;2026-02-01;FR;',
      '3;2026-02-01;FR;',
    ]
    await give('orders.csv', `${rows.join('\r\n')}\r\n`)
    await give('points.jsonl', [1, 2, 3, 4].map((x) => JSON.stringify({ x, y: -2 * x, z: 'a' })).join('\n'))
    await give('open.csv', 'a,b\n1,"2')
    const path = 'orders.csv'
    const [profile, groups, pairs, unknown, broken] = await use('data-analyst', [
      ['profile', { path, decimal: ',' }],
      [
        'aggregate',
        {
          path,
          decimal: ',',
          group_by: ['day:month'],
          measures: [{ op: 'sum', column: 'sum' }, { op: 'count' }],
          where: [{ column: 'id', is: '<=', value: 3 }],
        },
      ],
      ['correlate', { path: 'points.jsonl' }],
      ['aggregate', { path, measures: [{ op: 'sum', column: 'amount' }] }],
      ['profile', { path: 'open.csv' }],
    ])
    expect(profile).toMatchObject({ rows: 4, double_rows: 1 })
    expect(profile.columns).toMatchObject([
      { name: 'id', type: 'integer', distinct: 3 },
      { name: 'day', type: 'date', earliest: '2026-01-03', latest: '2026-02-01' },
      { name: 'land', type: 'text', top: [{ count: 2 }, { count: 2 }] },
      { name: 'sum', type: 'number', missing: 2, min: 20.5, median: 510.5, max: 1000.5 },
    ])
    expect(groups).toMatchObject({
      columns: ['day:month', 'sum of sum', 'rows'],
      rows: [
        ['2026-01', 1021, 2],
        ['2026-02', null, 2],
      ],
      notes: ['sum of sum: 2 of 4 rows have no number and are left out'],
    })
    expect(pairs.pairs).toEqual([{ columns: ['x', 'y'], n: 4, pearson: -1, spearman: -1 }])
    expect(unknown).toContain('there is no column "amount"; there are id, day, land, sum')
    expect(broken).toContain('row 2: a quote is opened and never closed')
  })

  it('api-tester: a request with what must be so, where skill and agent may connect to', async () => {
    await using server = createServer((request, response) => {
      let body = ''
      request.on('data', (part) => (body += part))
      request.on('end', () => {
        if (request.url === '/moved') return response.writeHead(302, { location: '/items' }).end()
        response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': 'session=secret; HttpOnly' })
        response.end(JSON.stringify({ method: request.method, sent: body, items: [{ id: 7 }] }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
    const url = `http://127.0.0.2:${(server.address() as AddressInfo).port}`
    const expected = {
      status: 201,
      headers: { 'Content-Type': 'json' },
      json: [
        { path: 'items[0].id', is: 'equal', value: 7 },
        { path: 'items', is: 'length', value: 2 },
        { path: 'error', is: 'missing' },
      ],
    }
    const [answer, moved, refused, closed, secret] = await use('api-tester', [
      ['request', { url: `${url}/items`, method: 'POST', json: { a: 1 }, expect: expected }],
      ['request', { url: `${url}/moved` }],
      ['request', { url: 'http://127.0.0.3/' }],
      ['request', { url: 'http://127.0.0.2:1/' }],
      ['request', { url, auth: true }],
    ])
    expect(answer).toMatchObject({ passed: false, status: 201, json: { method: 'POST', sent: '{"a":1}' } })
    expect(answer.checks.filter(({ passed }: Json) => !passed)).toEqual([
      { check: 'items length 2', passed: false, got: '[{"id":7}]' },
    ])
    expect(JSON.stringify(answer)).not.toContain('secret')
    expect(moved).toMatchObject({ status: 302, note: 'the redirect was not followed' })
    expect(refused).toContain('capabilities.network of this agent does not allow 127.0.0.3')
    expect(closed).toContain('127.0.0.2:1 was not reached')
    expect(secret).toContain('API_TESTER_TOKEN and API_TESTER_HOST are not set')
  })

  it('pass their own tests', async () => {
    const { body } = await test.request<Json>('POST', '/api/skills/regex-expert/test')
    expect(body.results.filter(({ passed }: Json) => !passed)).toEqual([])
    expect(body).toMatchObject({ passed: 3, failed: 0 })
  })
})
