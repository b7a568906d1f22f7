import Sqlite from 'better-sqlite3'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import type { Json } from '../support/json.ts'

// One daemon is killed once, while an effect of each kind lies between the act and its receipt. The next one recovers.

interface Arrival {
  readonly method: string
  readonly path: string
  readonly key: string | undefined
}
/** The world outside: web services, a receiver of webhooks, and the servers of two channels. */
class Outside {
  readonly arrivals: Arrival[] = []
  /** The act has happened, and its answer never comes. */
  holds = true
  readonly #server: Server = createServer((request, response) => this.#answer(request, response))

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, resolve))
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }
  of(path: string): readonly Arrival[] {
    return this.arrivals.filter((each) => each.path === path)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://outside').pathname
    request.resume().once('end', () => {
      if (path === '/topic/json') {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' })
        response.write('{"id":"o1","time":1,"event":"open","topic":"topic"}\n')
        return
      }
      if (path === '/topic/auth') return response.writeHead(200).end('{"success":true}')
      if (request.method === 'HEAD') return response.writeHead(405).end()
      const key = request.headers['idempotency-key']
      this.arrivals.push({ method: request.method ?? '', path, key: key === undefined ? key : String(key) })
      const isHeld = this.holds && !path.startsWith('/web')
      return isHeld ? undefined : response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"x1"}')
    })
  }
}

const json = { 'content-type': 'application/json' }
const outside = new Outside()
let home: string
let daemon: DaemonProcess
let agent: string
let workspace: string
let run: string
const holdLog = (): string => join(home, 'held.log')

async function call<T = Json>(method: string, path: string, body?: object): Promise<T> {
  const init = { method, headers: json, ...(body && { body: JSON.stringify(body) }) }
  const answer = await fetch(daemon.url + path, init)
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as T
}
const boot = (holds: boolean): Promise<DaemonProcess> =>
  startDaemon({ home, env: { SVC_PLUGINS__HOLDER__FILE: holdLog(), SVC_PLUGINS__HOLDER__HOLDS: String(holds) } })

/** Each step is a turn of its own, which calls one tool; the name of the step says which. */
const steps = (port: number): Readonly<Record<string, readonly [tool: string, args: object]>> => ({
  shell: ['shell_exec', { command: 'sh act.sh' }],
  written: ['file_write', { path: 'written.txt', content: 'new' }],
  reverted: ['file_write', { path: 'reverted.txt', content: 'new' }],
  changed: ['file_write', { path: 'changed.txt', content: 'new' }],
  patched: ['apply_patch', { patch: '*** Begin Patch\n*** Add File: patched.txt\n+new\n*** End Patch' }],
  get: ['web_fetch', { url: `http://127.0.0.1:${port}/web/get` }],
  put: ['web_fetch', { url: `http://127.0.0.1:${port}/web/put`, method: 'PUT', body: 'x' }],
  post: ['web_fetch', { url: `http://127.0.0.1:${port}/web/post`, method: 'POST', body: 'x' }],
  keyed: ['web_fetch', { url: `http://localhost:${port}/web/keyed`, method: 'POST', body: 'x' }],
})
const RECOVERED: Readonly<Record<string, { readonly told: RegExp; readonly state: string }>> = {
  shell: { told: /^unknown: .*"sh act.sh".*SVC_IDEMPOTENCY_KEY was [0-9a-f-]{36}/, state: 'unknown' },
  written: { told: /^Done: "written.txt" holds what this call was to write/, state: 'done' },
  reverted: { told: /^Replaced "reverted.txt"/, state: 'done' },
  changed: { told: /^unknown: .*"changed.txt"/, state: 'unknown' },
  patched: { told: /^Done: "patched.txt"/, state: 'done' },
  get: { told: /^200 /, state: 'done' },
  put: { told: /^200 /, state: 'done' },
  post: { told: /^unknown: .*POST to 127.0.0.1.*Idempotency-Key was [0-9a-f-]{36}/, state: 'unknown' },
  keyed: { told: /^200 /, state: 'done' },
}

async function configure(): Promise<void> {
  const { port } = outside
  await cp(fileURLToPath(new URL('../fixtures/plugins/holder', import.meta.url)), join(home, 'plugins', 'holder'), {
    recursive: true,
  })
  await writeFile(
    join(home, 'config.toml'),
    `[outbound]
allow = ["127.0.0.1", "localhost"]
[plugins.approvals]
policy = "never"
[plugins.web]
idempotent_hosts = ["localhost"]
[plugins.webhooks]
poll_ms = 50
[plugins.channels]
resend_uncertain = false
[channels.webhook]
token = "a-shared-secret-of-32-characters"
callback_url = "http://127.0.0.1:${port}/callback"
[channels.ntfy]
base_url = "http://127.0.0.1:${port}"
topic = "topic"
`,
  )
}

/** Lets every effect happen, and returns when none of them has a receipt yet. */
async function act(): Promise<void> {
  const manifest_toml = `name = "worker"
[capabilities]
tools = ["*"]
shell = ["sh act.sh"]
network = ["127.0.0.1", "localhost"]
`
  agent = (await call('POST', '/api/agents', { manifest_toml })).agent_id
  workspace = join(home, 'data', 'workspaces', agent)
  await mkdir(workspace, { recursive: true })
  await writeFile(join(workspace, 'act.sh'), 'echo "$SVC_IDEMPOTENCY_KEY" >> acts.log\n')
  for (const name of ['written', 'reverted', 'changed']) await writeFile(join(workspace, `${name}.txt`), 'old')

  const url = `http://127.0.0.1:${outside.port}/hook`
  await call('POST', '/api/webhooks', { name: 'receiver', url, events: ['agent_spawned'] })
  await call('POST', '/api/agents', { manifest_toml: 'name = "spawned"' })
  const targets = [
    { kind: 'channel', channel: 'webhook', to: 'ada' },
    { kind: 'channel', channel: 'ntfy', to: 'topic' },
  ]
  const { id: schedule } = await call('POST', '/api/schedules', {
    agent_id: agent,
    cron: '0 0 1 1 *',
    prompt: 'hello',
    delivery_targets: targets,
  })
  await call('POST', `/api/schedules/${schedule}/run`)

  const { workflow_id: workflow } = await call('POST', '/api/workflows', {
    name: 'effects',
    steps: [
      ...Object.entries(steps(outside.port)).map(([name, [tool, args]]) => ({
        name,
        agent_id: agent,
        prompt: `use ${tool} ${JSON.stringify(args)}`,
        mode: 'fan_out',
      })),
      { name: 'all', mode: 'collect' },
    ],
  })
  run = (await call('POST', `/api/workflows/${workflow}/run?wait=false`, { input: 'x' })).run_id

  const held = async (): Promise<number> => (await readFile(holdLog(), 'utf8').catch(() => '')).split('\n').length - 1
  await eventually(async () => expect(await held()).toBe(Object.keys(RECOVERED).length))
  await eventually(() => expect(['/hook', '/callback', '/'].map((path) => outside.of(path).length)).toEqual([1, 1, 1]))
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-effects-'))
  await outside.listen()
  await configure()
  daemon = await boot(true)
  await act()
  await daemon.kill()
  outside.holds = false
  await writeFile(join(workspace, 'reverted.txt'), 'old')
  await writeFile(join(workspace, 'changed.txt'), 'by a person')
  daemon = await boot(false)
  await eventually(async () => expect((await call('GET', `/api/workflows/runs/${run}`)).state).toBe('Completed'))
})
afterAll(async () => {
  await daemon.kill()
  await outside[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

function rows<T>(sql: string): T[] {
  const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
  try {
    return db.prepare(sql).all() as T[]
  } finally {
    db.close()
  }
}

describe('after a kill between the act and the receipt', () => {
  it.each(Object.entries(RECOVERED))('%s: the agent and the journal are told', (name, { told, state }) => {
    const [tool, args] = steps(outside.port)[name] ?? ['', {}]
    const effects = rows<{ state: string; result: string; input: string }>(
      `SELECT state, result, input FROM journal_effect WHERE name = '${tool}'`,
    )
    const effect = effects.find(({ input }) => JSON.stringify(JSON.parse(input)) === JSON.stringify(args))
    expect(JSON.parse(effect?.result ?? '{}').text).toMatch(told)
    expect(effect?.state).toBe(state)
  })

  it('a program is not run again, and has the key that the agent was told', async () => {
    const keys = (await readFile(join(workspace, 'acts.log'), 'utf8')).trim().split('\n')
    expect(keys).toHaveLength(1)
    const [told] = rows<{ result: string }>(`SELECT result FROM journal_effect WHERE name = 'shell_exec'`)
    expect(told?.result).toContain(keys[0])
  })

  it('a file is compared: written once, written again over what it was, and never over the work of somebody else', async () => {
    const read = (name: string): Promise<string> => readFile(join(workspace, `${name}.txt`), 'utf8')
    expect(await Promise.all(['written', 'reverted', 'changed', 'patched'].map(read))).toEqual([
      'new',
      'new',
      'by a person',
      'new\n',
    ])
  })

  it.each([
    ['/web/get', 2, false],
    ['/web/put', 2, true],
    ['/web/keyed', 2, true],
    ['/web/post', 1, true],
    ['/hook', 2, true],
    ['/callback', 2, true],
    // ntfy cannot tell a repetition, and resend_uncertain is off.
    ['/', 1, false],
  ] as const)('%s arrives %d times, with a key: %s, always the same', async (path, times, hasKey) => {
    await eventually(() => expect(outside.of(path)).toHaveLength(times))
    const keys = new Set(outside.of(path).map(({ key }) => key))
    expect(keys.size).toBe(1)
    expect([...keys][0] !== undefined).toBe(hasKey)
  })

  it('the operator finds every cut call in the audit trail, the metrics and the log, and the message that may have arrived', async () => {
    const { entries } = await call<{ entries: { details: string }[] }>(
      'GET',
      '/api/audit/recent?n=500&event_type=tool_invoked',
    )
    const cut = entries.map(({ details }) => details).filter((text) => text.includes('was cut off'))
    expect(cut).toHaveLength(Object.keys(RECOVERED).length)
    const metrics = await (await fetch(`${daemon.url}/api/metrics`)).text()
    expect(metrics).toMatch(/svc_chat_cut_calls_total\{outcome="unknown"\} 3/)
    expect(metrics).toMatch(/svc_chat_cut_calls_total\{outcome="repeat"\} 4/)
    expect(metrics).toMatch(/svc_chat_cut_calls_total\{outcome="done"\} 2/)
    expect(daemon.output()).toMatch(/a call of shell_exec in turn .* was cut off .* is not made again/)
    await eventually(async () =>
      expect((await call('GET', '/api/channels/ntfy/outbox')).messages).toMatchObject([
        { state: 'dead', error: expect.stringContaining('may have arrived') },
      ]),
    )
  })
})
