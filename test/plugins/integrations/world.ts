import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { parse } from '../../../core/schema/parse.ts'
import { Extensions, Settings } from '../../../plugins/integrations/config.ts'
import { migrations } from '../../../plugins/integrations/migrations.ts'
import { createRuntime } from '../../../plugins/integrations/runtime.ts'
import type { McpServerAddition, McpServerState } from '../../../plugins/mcp/contract.ts'
import { open } from '../../core/storage/engines.ts'
import type { Json } from '../../support/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** What stands for the plugin mcp: servers that work, or fail as the test says. */
export class FakeServers {
  readonly added = new Map<string, McpServerAddition>()
  readonly states = new Map<string, McpServerState>()
  /** The next additions and reconnects fail with this. */
  failure: string | undefined
  /** Pings fail with this. */
  silence: string | undefined
  reconnects = 0
  /** Called before an addition settles. */
  onAdd: () => void = () => {}

  list = () => Promise.resolve([...this.added.keys()].map((name) => this.#view(name)))
  find = (name: string) => Promise.resolve(this.added.has(name) ? this.#view(name) : undefined)
  add = (spec: McpServerAddition) => {
    this.onAdd()
    if (this.failure !== undefined) return Promise.reject(this.#failed())
    this.added.set(spec.name, spec)
    return Promise.resolve(this.#view(spec.name))
  }
  remove = (name: string) => {
    if (!this.added.delete(name)) throw new Refusal('not_found', 'no server')
    return Promise.resolve()
  }
  reconnect = (name: string) => {
    this.reconnects++
    if (this.failure !== undefined) return Promise.reject(this.#failed())
    this.states.set(name, 'connected')
    return Promise.resolve(this.#view(name))
  }
  client = () => {
    const ping = () => (this.silence === undefined ? Promise.resolve() : Promise.reject(new Error(this.silence)))
    return Promise.resolve({ ping })
  }
  #failed = () => new UpstreamFailure('mcp', this.failure ?? '', { reason: 'server_error', retry: 'later' })
  #view(name: string): Json {
    const state = this.states.get(name) ?? 'connected'
    return { name, state, connected: state === 'connected', error: state === 'error' ? 'it ended' : null, tools: [] }
  }
}

/** One daemon's integrations on a database of their own, with fake servers. */
export async function openWorld(settings: Json = {}, extensions: Json = {}) {
  const homeDir = await mkdtemp(join(tmpdir(), 'svc-integrations-'))
  const { database } = await open('sqlite')
  await database.migrate('integrations', migrations)
  const servers = new FakeServers()
  const clock = new ManualClock()
  const trail: string[] = []
  const announced: Json[] = []
  const counted: string[] = []
  const counter = (name: string) => ({
    add: (_amount?: number, labels: Json = {}) => void counted.push(`${name} ${Object.values(labels).join()}`),
  })
  // The trail has a row of its own only in the real daemon: an entry here is a statement without effect.
  const entry = ({ details }: Json) => {
    trail.push(details)
    return database.sql.sql`DELETE FROM integrations_installed WHERE id = ''`
  }
  const alive = new Set(['first'])
  const cluster = (self: string) => ({ self, isAlive: (id: string) => alive.has(id), unlessAlive: () => [] })
  const deps: Json = {
    cluster: cluster('first'),
    settings: { ...parse(Settings, settings), extensions: parse(Extensions, extensions) },
    homeDir,
    servers,
    audit: { entry, write: async (record: Json) => void entry(record) },
    db: database.sql,
    hooks: { emit: async (_hook: Json, payload: Json) => void announced.push(payload) },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    hasProgram: (name: string) => name === 'npx' || name === 'uvx',
    checks: counter('check'),
    reconnects: counter('reconnect'),
    alerts: counter('alert'),
    clock,
    random: () => 1,
  }
  return {
    ...createRuntime(deps as never),
    /** The same home and database after a restart. */
    restart() {
      alive.delete('first')
      return createRuntime({ ...deps, cluster: cluster('second') } as never)
    },
    /** Another daemon on the database, beside the first. */
    another: () => createRuntime({ ...deps, cluster: cluster('second') } as never),
    servers,
    clock,
    homeDir,
    trail,
    announced,
    counted,
    [Symbol.asyncDispose]: () => rm(homeDir, { recursive: true, force: true }),
  }
}
