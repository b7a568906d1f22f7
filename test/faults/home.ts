import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import type { FaultOptions } from './report.ts'
import type { Json } from '../support/json.ts'

export const unlimited = { SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1000000000' }
export const json = { 'content-type': 'application/json' }

/** A home with one agent of the embedded model; removed when disposed. */
export interface Home extends Disposable {
  readonly path: string
  readonly agent: string
  start(options?: Partial<Parameters<typeof startDaemon>[0]>): Promise<DaemonProcess>
}
export async function prepareHome(
  { built }: Pick<FaultOptions, 'built'>,
  env: NodeJS.ProcessEnv = {},
  path = mkdtempSync(join(tmpdir(), 'svc-fault-')),
): Promise<Home> {
  const first = await (firsts.get(built) ?? makeFirst(built))
  cpSync(first.path, path, { recursive: true })
  return {
    path,
    agent: first.agent,
    start: (options = {}) =>
      startDaemon({ home: path, built, ...options, env: { ...unlimited, ...env, ...options.env } }),
    [Symbol.dispose]() {
      rmSync(path, { recursive: true, force: true })
    },
  }
}

interface FirstHome {
  readonly path: string
  readonly agent: string
}
/** A daemon makes one, and every fault gets a copy. */
const firsts = new Map<boolean, Promise<FirstHome>>()
function makeFirst(built: boolean): Promise<FirstHome> {
  const path = mkdtempSync(join(tmpdir(), 'svc-fault-first-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true }))
  const first = makeAgent(path, built)
  firsts.set(built, first)
  return first
}
async function makeAgent(path: string, built: boolean): Promise<FirstHome> {
  await using daemon = await startDaemon({ home: path, built, env: unlimited })
  const { body } = await call(daemon, 'POST', '/api/agents', {
    manifest_toml: 'name = "fault"\n[model]\nprovider = "builtin"\nmodel = "offline"\n[capabilities]\ntools = ["*"]\n',
  })
  await daemon.stop()
  return { path, agent: body.agent_id }
}

export interface Called {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}
/** Rejects when the connection breaks or nothing comes for so long. */
export async function call(
  daemon: Pick<DaemonProcess, 'url'>,
  method: string,
  path: string,
  body?: unknown,
  timeoutMs = 15_000,
): Promise<Called> {
  const response = await fetch(daemon.url + path, {
    method,
    headers: json,
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
}

/** Writes to one key, one after the other, and knows what was acknowledged. */
export class Writer {
  /** The last value that was acknowledged, and one that was sent after it whose fate is not known. */
  acknowledged = 0
  open: number | undefined
  #next = 1
  readonly #path: string
  constructor(agent: string, key = 'fault') {
    this.#path = `/api/memory/agents/${agent}/kv/${key}`
  }

  /** One write. The status, or `undefined` when there was no answer. */
  async write(daemon: Pick<DaemonProcess, 'url'>, timeoutMs?: number): Promise<Called | undefined> {
    const value = this.#next++
    this.open = value
    let answer: Called
    try {
      answer = await call(daemon, 'PUT', this.#path, { value }, timeoutMs)
    } catch {
      return undefined
    }
    if (answer.status === 200) {
      this.acknowledged = value
      this.open = undefined
    } else if (answer.status < 500) throw new Error(`a write answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer
  }

  /** What is wrong with what is there now; `undefined` when nothing is. */
  async check(daemon: Pick<DaemonProcess, 'url'>): Promise<string | undefined> {
    const { status, body } = await call(daemon, 'GET', this.#path)
    const found: unknown = status === 200 ? body.value : status === 404 ? 0 : `status ${status}`
    // A refused or unanswered write may have happened, as a whole.
    return found === this.acknowledged || (typeof found === 'number' && found > this.acknowledged && found < this.#next)
      ? undefined
      : `the key holds ${String(found)}, acknowledged was ${this.acknowledged}`
  }
}

/** What is wrong with the trail, the rows and the file. */
export async function examine(daemon: DaemonProcess, home: Home): Promise<string[]> {
  const problems: string[] = []
  const { body } = await call(daemon, 'GET', '/api/audit/verify')
  if (body.valid !== true && body.status !== 'valid') problems.push(`the audit chain: ${JSON.stringify(body)}`)
  const database = new DatabaseSync(join(home.path, 'data', 'svc.db'), { readOnly: true })
  try {
    const checked = database.prepare('PRAGMA integrity_check').all()
    if (checked[0]?.['integrity_check'] !== 'ok') problems.push(`integrity check: ${JSON.stringify(checked)}`)
  } finally {
    database.close()
  }
  return problems
}
