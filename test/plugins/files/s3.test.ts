import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import * as v from 'valibot'
import type { DaemonClient } from '../../../core/net/daemon-client.ts'
import check from '../../../plugins/files/cli/check.ts'
import { S3Section } from '../../../plugins/files/s3/section.ts'
import { systemTimer } from '../../../core/jobs/timer.ts'
import type { JobTimer } from '../../../core/jobs/timer.ts'
import type { HostOptions } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { KEY, requestAt, startS3 } from '../../support/s3-server.ts'
import type { Fault, S3Server } from '../../support/s3-server.ts'
import { openTools } from '../../support/tool-stage.ts'
import type { ToolStage } from '../../support/tool-stage.ts'

/** Workspaces of two daemons in a bucket. */
let s3: S3Server
let database: TestDatabase
let one: ToolStage
let two: ToolStage
let agent: string
const hourly: (() => Promise<void>)[] = []
beforeAll(async () => {
  s3 = await startS3()
  database = await createTestDatabase()
  one = await open({ jobTimer: (plugin) => (plugin === 'files' ? filesTimer : systemTimer) })
  two = await open()
  agent = await one.spawn('filer', 'shell = ["*"]')
})
afterAll(async () => {
  await two?.[Symbol.asyncDispose]()
  await one?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await s3?.[Symbol.asyncDispose]()
})
beforeEach(() => {
  s3.fault = undefined
})

/** Keeps what `one` does every hour. */
const filesTimer: JobTimer = {
  every(ms, run) {
    if (ms === 3_600_000) hourly.push(run)
    return () => {}
  },
  cron: () => () => {},
}
interface Options extends Pick<HostOptions, 'fetch' | 'home' | 'jobTimer'> {
  readonly section?: object
  readonly mount?: string
  readonly url?: string
}
function open({ section = {}, mount = 's3', url = database.url, ...host }: Options = {}): Promise<ToolStage> {
  const s3Section = {
    endpoint: s3.endpoint,
    bucket: s3.bucket,
    prefix: 'svc/',
    access_key_id: KEY,
    secret_access_key: KEY,
    min_object_bytes: 100,
    attempts: 2,
    ...section,
  }
  const config = { database_url: url, plugins: { files: { mount, max_file_bytes: 100_000, s3: s3Section } } }
  return openTools(['system', 'settings', 'shell'], { memory: false, config, ...host })
}
/** What `svc doctor` says of the files. */
const doctor = async ({ host }: ToolStage) => {
  const call: DaemonClient['call'] = async (method, route, schema) =>
    v.parse(schema, (await host.json(method, route)).body)
  return await check({ config: host.announced, env: {}, daemon: { call } as DaemonClient })
}
/** Runs what runs every hour at the first daemon. */
const sweep = async () => {
  for (const run of hourly) await run()
}
const refuseAll: Fault = (_, response) => {
  response.writeHead(403).end()
  return true
}
const path = (name: string) => `/api/agents/${agent}/files/${name}`
const put = (at: ToolStage, name: string, content: string) => at.host.json('PUT', path(name), { content })
const read = async (at: ToolStage, name: string) => {
  const { status, body } = await at.host.json('GET', path(name))
  return status === 200 ? body.content : [status, body.error.message]
}
const long = (letter: string) => letter.repeat(2_000)
/** The objects of files, without what a check of the bucket is about to delete. */
const objects = async () => [...(await s3.objects())].filter(([name]) => !name.includes('.check'))
const fileOf = async (name: string) => {
  const key = await database.query(
    `SELECT object_key FROM files_stored WHERE agent_id = '${agent}' AND path = '${name}'`,
  )
  const found = (await s3.objects()).get(`svc/${key}`)
  if (found === undefined) throw new Error(`no object ${key}`)
  return found
}

it('what one writes is read at the other; small files stay in the database', async () => {
  expect((await put(one, 'notes/ä b+c.txt', long('a'))).status).toBe(200)
  expect(await read(two, 'notes/%C3%A4%20b%2Bc.txt')).toBe(long('a'))
  const before = await objects()
  expect((await put(two, 'small.txt', 'small')).status).toBe(200)
  expect(await read(one, 'small.txt')).toBe('small')
  expect(await objects()).toEqual(before)
  expect(before.map(([name]) => name)).toContainEqual(expect.stringMatching(/^svc\/[0-9a-f]{64}\/[0-9a-f-]{36}$/))
  expect(await read(one, 'missing.txt')).toEqual([404, expect.stringContaining('No file "missing.txt"')])
  expect((await one.call(agent, 'code_search', { query: 'aaa', path: 'notes' })).failed).toBe(false)
  expect(await database.query(`SELECT max(length(content)) FROM files_stored WHERE object_key IS NOT NULL`)).toBe('0')
})

it('of two writers of one file the later one wins, whole', async () => {
  const letters = ['b', 'c', 'd', 'e']
  await Promise.all(letters.map((letter, at) => put(at % 2 ? one : two, 'same.txt', long(letter))))
  const kept = await read(one, 'same.txt')
  expect(letters.map(long)).toContain(kept)
  expect(await read(two, 'same.txt')).toBe(kept)
})

it('a write that is cut off leaves the file as it was', async () => {
  await put(one, 'cut.txt', long('f'))
  s3.fault = (request) => {
    if (request.method !== 'PUT') return false
    void once(request, 'data').then(() => request.socket.destroy())
    return true
  }
  const cut = await put(one, 'cut.txt', long('g'))
  expect([cut.status, cut.body.error.message]).toEqual([503, expect.stringContaining('does not answer')])
  s3.fault = undefined
  expect(await read(two, 'cut.txt')).toBe(long('f'))
  expect((await put(one, 'cut.txt', long('g'))).status).toBe(200)
  expect(await read(two, 'cut.txt')).toBe(long('g'))
})

it('a busy server is asked again, and the failure that stays impairs the daemon until it is over', async () => {
  let left = 1
  const busy: Fault = (_, response) => {
    if (left === 0) return false
    left--
    response.writeHead(503, { 'content-type': 'application/xml' }).end('<Error><Code>SlowDown</Code></Error>')
    return true
  }
  s3.fault = busy
  expect((await put(one, 'busy.txt', long('h'))).status).toBe(200)
  const health = async () => (await one.host.json('GET', '/api/health/detail')).body
  expect([(await health()).status, (await doctor(one)).state]).toEqual(['ok', 'ok'])
  left = Infinity
  const refused = await put(one, 'busy.txt', long('i'))
  expect([refused.status, refused.headers.get('retry-after'), refused.body.error.message]).toEqual([
    503,
    '5',
    expect.stringContaining('503 SlowDown: the server is too busy'),
  ])
  expect(await health()).toMatchObject({
    status: 'degraded',
    config_warnings: expect.arrayContaining([expect.stringContaining('files: The bucket "agents"')]),
  })
  s3.fault = undefined
  expect(await read(one, 'busy.txt')).toBe(long('h'))
  expect((await health()).status).toBe('ok')
  expect(
    (await one.host.fetch('/api/metrics').then((response) => response.text())).match(
      /svc_files_s3_requests_total\{[^}]*\}/g,
    ),
  ).toEqual(
    expect.arrayContaining([
      'svc_files_s3_requests_total{operation="put",outcome="retried"}',
      'svc_files_s3_requests_total{operation="put",outcome="failed"}',
      'svc_files_s3_requests_total{operation="get",outcome="ok"}',
    ]),
  )
})

it('a server that is silent for timeout_ms is given up after that many attempts', async () => {
  await using hasty = await open({ section: { timeout_ms: 1_000, attempts: 2 } })
  let requests = 0
  s3.fault = ({ method, url = '' }) => {
    if (method === 'PUT' && !url.includes('.check')) requests++
    return true
  }
  const refused = await put(hasty, 'silent.txt', long('w'))
  expect([refused.status, refused.body.error.message]).toEqual([503, expect.stringContaining('within 1000 ms')])
  expect(requests).toBe(2)
})

/** Answers the first request for an object as a fault does, and leaves the others to the server. */
const firstRead = (answer: (response: ServerResponse) => void): Fault => {
  let isDone = false
  return ({ method, url = '' }, response) => {
    if (isDone || method !== 'GET' || url.includes('.check')) return false
    isDone = true
    answer(response)
    return true
  }
}
it('a server that never ends its answer, or asks for a longer pause, is given up after deadline_ms', async () => {
  await put(one, 'late.txt', long('1'))
  await using patient = await open({ section: { deadline_ms: 1_000, attempts: 20 } })
  const answers: readonly ((response: ServerResponse) => void)[] = [
    () => undefined,
    (response) => void response.writeHead(200, { 'content-length': '2000' }).write('x'.repeat(1_000)),
    (response) => response.writeHead(503, { 'retry-after': '40' }).end('<Error><Code>SlowDown</Code></Error>'),
  ]
  for (const answer of answers) {
    s3.fault = ({ method }, response) => {
      if (method === 'GET') answer(response)
      return method === 'GET'
    }
    const { status, body, headers } = await patient.host.json('GET', path('late.txt'))
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(/within 1000 ms|SlowDown/)])
    expect(headers.get('retry-after')).toBe(answer === answers[2] ? '40' : '5')
  }
})

it.each([
  [
    'is shorter than it says',
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': '2000' }).write('x'.repeat(1_000), () => response.destroy())
    },
  ],
  [
    'says less than it is',
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': '1000' }).end('x'.repeat(1_000))
    },
  ],
  [
    'is a pause that is asked for',
    (response: ServerResponse) => {
      response.writeHead(503, { 'retry-after': '1' }).end('<Error><Code>SlowDown</Code></Error>')
    },
  ],
])('an answer that %s is asked for again', async (_, answer) => {
  await put(one, 'again.txt', long('2'))
  s3.fault = firstRead(answer)
  const start = performance.now()
  expect(await read(two, 'again.txt')).toBe(long('2'))
  if (answer.toString().includes('retry-after')) expect(performance.now() - start).toBeGreaterThan(990)
})

it.each([
  [
    403,
    'RequestTimeTooSkewed',
    { date: new Date(Date.now() - 3_600_000).toUTCString() },
    /set it \(this machine is 36\d\d s ahead of it\)/,
  ],
  [
    301,
    'PermanentRedirect',
    { 'x-amz-bucket-region': 'eu-west-1' },
    /check region and endpoint \(the bucket is in eu-west-1\)/,
  ],
] as const)('%s %s says what to set', async (status, code, headers, message) => {
  s3.fault = (_, response) => {
    response.writeHead(status, headers).end(`<Error><Code>${code}</Code></Error>`)
    return true
  }
  expect((await put(one, 'told.txt', long('3'))).body.error.message).toMatch(message)
})

it('a content that is not what was written, or is gone, is never given out', async () => {
  await put(one, 'kept.txt', long('j'))
  await writeFile(await fileOf('kept.txt'), long('k'))
  expect(await read(two, 'kept.txt')).toEqual([503, expect.stringContaining('is not what was written')])
  await writeFile(await fileOf('kept.txt'), long('k').repeat(50))
  expect(await read(two, 'kept.txt')).toEqual([503, expect.stringContaining('sent more than')])
  await rm(await fileOf('kept.txt'))
  expect(await read(two, 'kept.txt')).toEqual([503, expect.stringContaining('is missing in the bucket')])
  expect((await put(two, 'kept.txt', long('l'))).status).toBe(200)
  expect(await read(one, 'kept.txt')).toBe(long('l'))
})

it('a key that svc has not written is not asked for, nor deleted: it could lead elsewhere', async () => {
  await put(one, 'led.txt', long('q'))
  const elsewhere = [
    `//${new URL(s3.endpoint).host}/elsewhere`,
    '../elsewhere',
    'http://127.0.0.1:1/x',
    'a/../../x',
    'x?acl',
  ]
  const asked: string[] = []
  s3.fault = (request) => {
    asked.push(`${request.method} ${request.url}`)
    return false
  }
  for (const key of elsewhere) {
    await database.query(`UPDATE files_stored SET object_key = '${key}' WHERE path = 'led.txt'`)
    expect(await read(two, 'led.txt')).toEqual([503, expect.stringContaining('which svc has not written')])
    await database.query(`INSERT INTO files_object (object_key, size_bytes, written_at, unused_at)
      VALUES ('${key}', 1, '2020', '2020')`)
  }
  asked.length = 0
  await sweep()
  s3.fault = undefined
  expect(asked.filter((line) => /elsewhere|acl|\/x/.test(line))).toEqual([])
  expect(await database.query(`SELECT count(*) FROM files_object WHERE written_at = '2020'`)).toBe('0')
  await database.query(`DELETE FROM files_stored WHERE path = 'led.txt'`)
})

it('contents of files that were replaced or removed are deleted some time later, and no others', async () => {
  for (const name of ['stays.txt', 'replaced.txt', 'removed.txt']) await put(one, name, long('s'))
  const [stays, replaced, removed] = [
    await fileOf('stays.txt'),
    await fileOf('replaced.txt'),
    await fileOf('removed.txt'),
  ]
  await put(one, 'replaced.txt', long('t'))
  expect((await one.host.json('DELETE', path('removed.txt'))).status).toBe(200)
  const kept = async () => {
    const files = new Set((await s3.objects()).values())
    return [stays, replaced, removed].map((file) => files.has(file))
  }
  await sweep()
  expect(await kept()).toEqual([true, true, true])
  await database.query(`UPDATE files_object SET written_at = '2020'`)
  await sweep()
  expect(await kept()).toEqual([true, true, true])
  await database.query(`UPDATE files_object SET unused_at = '2020' WHERE unused_at IS NOT NULL`)
  s3.fault = refuseAll
  await sweep()
  s3.fault = undefined
  await sweep()
  expect(await kept()).toEqual([true, false, false])
  expect(await database.query('SELECT count(*) FROM files_object WHERE unused_at IS NOT NULL')).toBe('0')
  expect([await read(two, 'stays.txt'), await read(two, 'replaced.txt')]).toEqual([long('s'), long('t')])
})

it('a writer that is held up until its object counts as unused writes nothing', async () => {
  await put(one, 'held.txt', long('u'))
  s3.fault = async (request) => {
    if (request.method === 'PUT')
      await database.query(`UPDATE files_object SET unused_at = '2020' WHERE object_key NOT IN
        (SELECT object_key FROM files_stored WHERE object_key IS NOT NULL)`)
    return false
  }
  const held = await put(one, 'held.txt', long('v'))
  expect([held.status, held.body.error.message]).toEqual([409, expect.stringContaining('write it again')])
  expect(await read(two, 'held.txt')).toBe(long('u'))
})

it('a program works on a copy; what it changed is kept unless another daemon changed it meanwhile', async () => {
  await put(one, 'run.txt', long('5'))
  const run = (command: string) => one.call(agent, 'shell_exec', { command: `sh -c "${command}"` })
  expect(await run('cat run.txt >> run.txt2; cat run.txt2 run.txt2 > run.txt; rm run.txt2')).toMatchObject({
    failed: false,
  })
  expect(await read(two, 'run.txt')).toBe(long('5').repeat(2))
  let isFirst = true
  s3.fault = async ({ method }) => {
    if (method !== 'PUT' || !isFirst) return false
    isFirst = false
    await put(two, 'run.txt', long('6'))
    return false
  }
  expect(await run('cp run.txt copy.txt; echo more >> run.txt')).toEqual({
    text: expect.stringContaining('not kept: "run.txt" changed elsewhere while the program ran'),
    failed: true,
  })
  expect([await read(one, 'run.txt'), await read(one, 'copy.txt')]).toEqual([long('6'), [404, expect.any(String)]])
})

it('what another server than one of S3 accepts is not written', async () => {
  s3.fault = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Sign in to this network</html>')
    return true
  }
  const refused = await put(one, 'accepted.txt', long('e'))
  expect([refused.status, refused.body.error.message]).toEqual([
    503,
    expect.stringContaining('answered PUT with 200 without an ETag: no S3 server is there: check endpoint'),
  ])
  s3.fault = undefined
  expect(await read(two, 'accepted.txt')).toEqual([404, expect.any(String)])
})

it('svc doctor names a clock that is far from that of the bucket', async () => {
  s3.fault = (_, response) => {
    response.setHeader('date', new Date(Date.now() + 3_600_000).toUTCString())
    return false
  }
  await using slow = await open()
  await eventually(async () =>
    expect(await doctor(slow)).toEqual({
      state: 'warn',
      found: expect.stringMatching(/^the clock of this machine is (359\d|360\d) s behind that of the bucket/),
      advice: expect.stringContaining('set the clock'),
    }),
  )
})

it('an answer that sends requests elsewhere is not followed', async () => {
  s3.fault = (_, response) => {
    response.writeHead(307, { location: 'http://127.0.0.2:10009/agents/x' }).end()
    return true
  }
  expect((await put(one, 'elsewhere.txt', long('m'))).body.error.message).toContain(
    'the server sends requests on to 127.0.0.2:10009',
  )
})

it.each([
  ['a secret that is wrong', { secret_access_key: 'wrong' }, 'SignatureDoesNotMatch: the secret is not that of'],
  ['a key that is wrong', { access_key_id: 'wrong' }, 'InvalidAccessKeyId: the server does not know the access key'],
  ['a bucket that is not there', { bucket: 'nowhere' }, 'NoSuchBucket: there is no such bucket: create it'],
])('%s is reported at the start, which goes on', async (_, section, problem) => {
  await using wrong = await open({ section })
  await eventually(async () => {
    const { body } = await wrong.host.json('GET', '/api/health/detail')
    expect(body.config_warnings).toEqual(expect.arrayContaining([expect.stringContaining(problem)]))
  })
  expect(await doctor(wrong)).toEqual({
    state: 'warn',
    found: expect.stringContaining(problem),
    advice: expect.any(String),
  })
  expect((await put(wrong, 'small.txt', 'small')).status).toBe(200)
  const refused = await put(wrong, 'large.txt', long('n'))
  expect([refused.status, refused.body.error.message]).toEqual([503, expect.stringContaining(problem)])
  const { config } = (await wrong.host.json('GET', '/api/config')).body
  expect(config.plugins.files.s3.secret_access_key).toBe('***')
})

it('a daemon on another bucket is named; contents of before are read after a change of the mount', async () => {
  await put(one, 'moved.txt', long('o'))
  await using back = await open({ mount: 'database' })
  expect(await read(back, 'moved.txt')).toBe(long('o'))
  const count = (await objects()).length
  await put(back, 'moved.txt', long('p'))
  expect((await objects()).length).toBe(count)
  expect(await read(one, 'moved.txt')).toBe(long('p'))
  const { members } = (await one.host.json('GET', '/api/cluster')).body
  expect(members.flatMap(({ problems }: { problems: readonly string[] }) => problems)).toEqual([
    expect.stringContaining('or to one bucket in all of them'),
  ])
})

it('folders of before are taken in, on SQLite too', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-s3-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  let kept: string
  {
    await using folder = await open({ mount: 'folder', home, url: `sqlite:${join(home, 'svc.db')}` })
    kept = await folder.spawn('kept')
    await folder.call(kept, 'file_write', { path: 'old.txt', content: long('q') })
  }
  await using moved = await open({ home, url: `sqlite:${join(home, 'svc.db')}` })
  const count = (await objects()).length
  expect((await moved.call(kept, 'file_read', { path: 'old.txt' })).text).toBe(long('q'))
  await moved.call(kept, 'file_write', { path: 'new.txt', content: long('r') })
  expect((await objects()).length).toBe(count + 1)
})

it('the key may come from variables', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', KEY)
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', KEY)
  vi.stubEnv('AWS_SESSION_TOKEN', 'a session')
  onTestFinished(() => void vi.unstubAllEnvs())
  const keys = { access_key_id: undefined, secret_access_key: undefined }
  const tokens = new Set<unknown>()
  s3.fault = ({ headers }) => {
    tokens.add(headers['x-amz-security-token'])
    return false
  }
  await using other = await open({ section: keys })
  expect((await put(other, 'variables.txt', long('x'))).status).toBe(200)
  expect([...tokens]).toEqual(['a session'])
})

it('the bucket may stand before the host, as at Amazon', async () => {
  const asked: string[] = []
  await using named = await open({
    section: { endpoint: undefined, region: 'eu-central-1' },
    fetch: (url, options) => {
      asked.push(String(url))
      return requestAt(s3.endpoint, new URL(url), options)
    },
  })
  expect((await put(named, 'named.txt', long('y'))).status).toBe(200)
  expect(asked).toContainEqual(
    expect.stringMatching(/^https:\/\/agents\.s3\.eu-central-1\.amazonaws\.com\/svc\/[0-9a-f]{64}\//),
  )
  expect(await read(one, 'named.txt')).toBe(long('y'))
  expect(await read(named, 'named.txt')).toBe(long('y'))
  await expect(open({ section: { path_style: false } })).rejects.toThrow('needs an endpoint with a name')
})

it('the key may be stored for all daemons, and be replaced without a restart', async () => {
  onTestFinished(() => void (s3.secret = KEY))
  const store = (secret: string) =>
    two.host.json('POST', '/api/files/bucket/key', { access_key_id: KEY, secret_access_key: secret })
  const refused = await store('wrong-secret')
  expect([refused.status, refused.body.error.message]).toEqual([
    400,
    expect.stringMatching(/^The key was not stored, since it does not work: .*SignatureDoesNotMatch/),
  ])
  s3.secret = 'a-new-secret'
  expect((await put(one, 'rotated.txt', long('z'))).status).toBe(503)
  expect((await store('a-new-secret')).body).toEqual({ status: 'stored', bucket: 'agents' })
  expect((await put(two, 'rotated.txt', long('z'))).status).toBe(200)
  await eventually(async () => expect(await read(one, 'rotated.txt')).toBe(long('z')))
  await eventually(async () => expect((await doctor(one)).state).toBe('ok'))
  expect(await two.audit('config_change')).toContain(
    'the access key of the bucket "agents" of files was stored: S3RVER',
  )
  s3.secret = KEY
  expect((await two.host.json('DELETE', '/api/files/bucket/key')).body).toEqual({ status: 'removed', bucket: 'agents' })
  expect(await read(two, 'rotated.txt')).toBe(long('z'))
  await eventually(async () => expect(await read(one, 'rotated.txt')).toBe(long('z')))
  expect((await two.host.json('DELETE', '/api/files/bucket/key')).status).toBe(409)
})

it('a daemon without a key starts, says what is missing, and works once it is stored', async () => {
  await using other = await createTestDatabase()
  await using keyless = await open({
    section: { access_key_id: undefined, secret_access_key: undefined },
    url: other.url,
  })
  await eventually(async () =>
    expect((await doctor(keyless)).found).toMatch(/access_key_id is missing: store an access key with .*files set-key/),
  )
  const key = { access_key_id: KEY, secret_access_key: KEY }
  expect((await keyless.host.json('POST', '/api/files/bucket/key', key)).status).toBe(200)
  await eventually(async () => expect((await doctor(keyless)).state).toBe('ok'))
  expect((await one.host.json('POST', '/api/files/bucket/key', { ...key, access_key_id: 'a b' })).status).toBe(400)
})

it('an address that is none, or leads elsewhere, is refused', () => {
  const wrong = [{ endpoint: 'ftp://x' }, { endpoint: 'http://x/y' }, { bucket: 'A_B' }, { prefix: '/x' }]
  // An address would lead to another bucket.
  for (const section of [...wrong, { prefix: '../other/' }, { prefix: 'a/./' }]) {
    const { issues = [] } = v.safeParse(S3Section, { bucket: 'agents', ...section })
    expect(issues.flatMap(({ path = [] }) => path.map(({ key }) => key))).toEqual(Object.keys(section))
  }
})
