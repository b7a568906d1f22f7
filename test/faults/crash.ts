import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { beyond } from './report.ts'
import type { Json } from '../support/json.ts'

/** Deterministic numbers in [0, 1), so that a run can be repeated by its seed. */
export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What the daemon acknowledged. Kept by the test, never by the daemon. */
interface Acknowledged {
  readonly values: Map<string, number>
  readonly agents: Set<string>
  readonly killed: Set<string>
  readonly answers: { readonly agentId: string; readonly message: string; readonly text: string }[]
  /** The state that was answered last, by id. */
  readonly approvals: Map<string, string>
}
/** Sent, no answer seen: it may have happened or not, but never by half. */
interface Unknown {
  readonly values: Map<string, Set<number>>
  readonly agents: Set<string>
  readonly effects: Set<string>
}

export interface CrashReport {
  readonly rounds: number
  readonly acknowledged: number
  readonly interrupted: number
  readonly effects: number
  readonly slowestBootMs: number
  readonly seed: number
  readonly problems: readonly string[]
}

const json = { 'content-type': 'application/json' }
const timeout = (): AbortSignal => AbortSignal.timeout(15_000)

async function get<T>(url: string): Promise<T> {
  const answer = await fetch(url, { signal: timeout() })
  if (!answer.ok) throw new Error(`GET ${new URL(url).pathname} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as T
}

/**
 * Kills the daemon's process group at random moments under load and looks for every acknowledged write again. The tool
 * `mark` of the fixture plugin writes one synced line to a file each time it really runs.
 */
export async function crash(options: {
  readonly rounds: number
  readonly seed: number
  readonly built?: boolean
}): Promise<CrashReport> {
  const random = generator(options.seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-crash-'))
  const marks = join(home, 'marks.log')
  cpSync(fileURLToPath(new URL('../fixtures/plugins/marker', import.meta.url)), join(home, 'plugins', 'marker'), {
    recursive: true,
  })
  const acknowledged: Acknowledged = {
    values: new Map(),
    agents: new Set(),
    killed: new Set(),
    answers: [],
    approvals: new Map(),
  }
  const unknown: Unknown = { values: new Map(), agents: new Set(), effects: new Set() }
  const problems: string[] = []
  let count = 0
  let slowestBootMs = 0
  const start = async (): Promise<DaemonProcess> => {
    const daemon = await startDaemon({
      home,
      built: options.built ?? false,
      env: {
        SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1000000000',
        SVC_PLUGINS__MARKER__FILE: marks,
        SVC_PLUGINS__APPROVALS__POLICY: 'never',
      },
    })
    slowestBootMs = Math.max(slowestBootMs, daemon.bootMs)
    return daemon
  }
  const writers = async (daemon: DaemonProcess, agentId: string, session: string, round: number): Promise<void> => {
    const running = { on: true }
    const until = async (step: (index: number) => Promise<void>): Promise<void> => {
      for (let index = 0; running.on && index < 100_000; index++) {
        try {
          await step(index)
        } catch {
          running.on = false /* the daemon is gone: what was in flight stays unknown */
        }
      }
    }
    const send = async (path: string, method: string, body?: object): Promise<{ status: number; body: Json }> => {
      const answer = await fetch(daemon.url + path, {
        method,
        headers: json,
        signal: timeout(),
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: await answer.json() }
    }
    const put = async (key: string, value: number, path: string, body: object): Promise<void> => {
      const tried = unknown.values.get(key) ?? new Set()
      unknown.values.set(key, tried.add(value))
      const { status } = await send(path, 'PUT', body)
      if (status !== 200) throw new Error(`put answered ${status}`)
      acknowledged.values.set(key, value)
      unknown.values.set(key, new Set())
      count++
    }
    await Promise.all([
      ...[0, 1, 2, 3].map((writer) =>
        until((index) => {
          const [key, value] = [`w${writer}-k${index % 7}`, round * 1_000_000 + index]
          return put(key, value, `/api/memory/agents/${agentId}/kv/${key}`, { value })
        }),
      ),
      // Below what a budget can be, in the longest run too.
      until((index) =>
        put('budget', round * 10_000 + index + 1, '/api/budget', { daily_limit_usd: round * 10_000 + index + 1 }),
      ),
      until((index) =>
        put('label', round * 1_000_000 + index, `/api/sessions/${session}/label`, {
          label: String(round * 1_000_000 + index),
        }),
      ),
      until(async (index) => {
        const name = `crash-${round}-${index}`
        unknown.agents.add(name)
        const { status, body } = await send('/api/agents', 'POST', {
          manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\nmodel = "offline"\n`,
        })
        if (status !== 201) throw new Error(`spawn answered ${status}`)
        acknowledged.agents.add(body.agent_id)
        count++
        if (index % 3 !== 2) return
        const gone = await send(`/api/agents/${body.agent_id}`, 'DELETE')
        if (gone.status === 200) acknowledged.killed.add(body.agent_id)
      }),
      until(async (index) => {
        const opened = await send('/api/approvals', 'POST', {
          agent_id: agentId,
          action: 'crash',
          payload: { round, index },
          timeout_secs: 300,
        })
        if (opened.status === 429) {
          // Left open by the rounds before.
          const { body } = await send('/api/approvals?status=pending', 'GET')
          for (const { id } of body.approvals)
            if ((await send(`/api/approvals/${id}/reject`, 'POST')).status === 200)
              acknowledged.approvals.set(id, 'rejected')
          return
        }
        if (opened.status !== 201) throw new Error(`approval answered ${opened.status}`)
        acknowledged.approvals.set(opened.body.id, 'pending')
        const { status, body } = await send(
          `/api/approvals/${opened.body.id}/${index % 2 === 0 ? 'approve' : 'reject'}`,
          'POST',
        )
        if (status !== 200) throw new Error(`the answer to an approval answered ${status}`)
        acknowledged.approvals.set(opened.body.id, body.status)
        count++
      }),
      ...[0, 1].map((writer) =>
        until(async (index) => {
          const label = `r${round}-t${writer}-${index}`
          unknown.effects.add(label)
          const message = index % 2 === 0 ? `use mark {"label":"${label}"}` : `hello ${label}`
          const { status, body } = await send(`/api/agents/${agentId}/message`, 'POST', { message })
          if (status !== 200) throw new Error(`message answered ${status}`)
          acknowledged.answers.push({ agentId, message, text: body.response })
          count++
        }),
      ),
    ])
  }

  try {
    let agentId: string
    let session: string
    {
      await using first = await start()
      const answer = await fetch(`${first.url}/api/agents`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({
          manifest_toml:
            'name = "crash"\n[model]\nprovider = "builtin"\nmodel = "offline"\n[capabilities]\ntools = ["*"]\n',
        }),
      })
      agentId = ((await answer.json()) as { agent_id: string }).agent_id
      session = (await get<{ session_id: string }>(`${first.url}/api/agents/${agentId}/session`)).session_id
      await first.stop()
    }
    for (let round = 0; round < options.rounds; round++) {
      await using daemon = await start()
      problems.push(...(await examine(daemon, agentId, acknowledged, unknown, round)))
      const load = writers(daemon, agentId, session, round)
      // In the first round something must have been done; later ones may die while the first requests come in.
      if (round === 0) await acted(marks)
      await new Promise((resolve) => {
        setTimeout(resolve, 5 + random() * 795)
      })
      await daemon.kill()
      await load
      if (problems.length > 0) break
    }
    await using last = await start()
    problems.push(...(await examine(last, agentId, acknowledged, unknown, options.rounds)))
    const turns = await interruptedTurns(last, agentId)
    await last.stop()
    problems.push(
      ...examineFile(home),
      ...examineMarks(marks, acknowledged),
      ...beyond(options.built === true, 'ms of a start after a kill', slowestBootMs, 3_000),
    )
    const effects = existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n').length : 0
    return {
      rounds: options.rounds,
      acknowledged: count,
      interrupted: turns,
      effects,
      slowestBootMs: Math.round(slowestBootMs),
      seed: options.seed,
      problems,
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Settles when the tool has run for the first time. */
async function acted(file: string): Promise<void> {
  const abort = new AbortController()
  const changes = watch(dirname(file), { signal: abort.signal })
  if (existsSync(file)) return
  for await (const change of changes) if (change.filename === basename(file)) break
  abort.abort()
}

async function examine(
  daemon: DaemonProcess,
  agentId: string,
  acknowledged: Acknowledged,
  unknown: Unknown,
  round: number,
): Promise<string[]> {
  const problems: string[] = []
  const say = (problem: string): void => {
    problems.push(`round ${round}: ${problem}`)
  }
  const { kv_pairs } = await get<{ kv_pairs: { key: string; value: number }[] }>(
    `${daemon.url}/api/memory/agents/${agentId}/kv`,
  )
  const found = new Map(kv_pairs.map((pair) => [pair.key, pair.value]))
  const { label } = await get<{ label?: string | null }>(`${daemon.url}/api/agents/${agentId}/session`)
  if (typeof label === 'string') found.set('label', Number(label))
  found.set('budget', (await get<{ daily_limit_usd: number }>(`${daemon.url}/api/budget`)).daily_limit_usd)
  for (const [key, value] of acknowledged.values) {
    const now = found.get(key)
    if (now !== value && !(now !== undefined && unknown.values.get(key)?.has(now)))
      say(`${key} is ${now}, acknowledged was ${value}`)
    // What the crash left open is settled now: the next round starts from what is there.
    if (now !== undefined) {
      acknowledged.values.set(key, now)
      unknown.values.set(key, new Set())
    }
  }
  const agents = new Set((await get<{ id: string }[]>(`${daemon.url}/api/agents`)).map((agent) => agent.id))
  for (const id of acknowledged.agents)
    if (!agents.has(id) && !acknowledged.killed.has(id)) {
      // A delete whose answer was lost may have happened.
      acknowledged.agents.delete(id)
      const gone = await fetch(`${daemon.url}/api/audit/recent?limit=500&event_type=agent_killed&agent_id=${id}`)
      const { entries } = (await gone.json()) as { entries: unknown[] }
      if (entries.length === 0) say(`agent ${id} is lost`)
    }
  for (const id of acknowledged.killed) if (agents.has(id)) say(`agent ${id} was deleted and is back`)
  for (const [id, state] of [...acknowledged.approvals].slice(-100)) {
    const { status } = await get<{ status: string }>(`${daemon.url}/api/approvals/${id}`)
    // An answer may have arrived whose own answer was lost.
    if (status !== state && state !== 'pending') say(`approval ${id} is ${status}, acknowledged was ${state}`)
  }
  const audit = await get<{ status: string; chain_length: number }>(`${daemon.url}/api/audit/verify`)
  if (audit.status !== 'valid') say(`the audit chain is ${JSON.stringify(audit)}`)
  // What was said after each question; every question is another one.
  const said = new Map<string, string[]>()
  let asked: string[] | undefined
  for (const message of await wholeSession(daemon, agentId)) {
    if (message.role === 'User') said.set(message.content, (asked = []))
    else asked?.push(message.content)
  }
  for (const { message, text } of acknowledged.answers) {
    const found = said.get(message)
    if (!found) say(`the answered message "${message}" is lost`)
    else if (!found.includes(text))
      say(`the answer to "${message}" is lost: ${JSON.stringify(found)} instead of ${JSON.stringify(text)}`)
  }
  return problems
}

async function wholeSession(
  daemon: DaemonProcess,
  agentId: string,
): Promise<{ id?: string; role: string; content: string }[]> {
  const all: { id?: string; role: string; content: string }[] = []
  let before: string | undefined
  for (let page = 0; page < 1000; page++) {
    const { messages } = await get<{ messages: { id?: string; role: string; content: string }[] }>(
      `${daemon.url}/api/agents/${agentId}/session?limit=500${before ? `&before=${before}` : ''}`,
    )
    all.unshift(...messages)
    before = messages[0]?.id
    // Tool messages are folded into their neighbours: only an empty page is the end.
    if (!before) return all
  }
  return all
}

async function interruptedTurns(daemon: DaemonProcess, agentId: string): Promise<number> {
  const { total } = await get<{ total: number; entries: unknown[] }>(
    `${daemon.url}/api/audit/recent?limit=500&event_type=turn_interrupted&agent_id=${agentId}`,
  ).then((body) => ({ total: body.entries.length }))
  return total
}

/** The database file itself, after the daemon has stopped. */
function examineFile(home: string): string[] {
  const file = readdirSync(home, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('svc.db'))
  if (!file) return ['no database file']
  const script = `const D = require('better-sqlite3'); const d = new D(process.argv[1], { readonly: true }); console.log(JSON.stringify({ check: d.pragma('integrity_check'), open: d.prepare("SELECT count(*) AS n FROM journal_turn WHERE state IN ('queued','running','waiting')").get().n, intents: d.prepare("SELECT count(*) AS n FROM journal_effect WHERE state = 'intent'").get().n }))`
  const output = JSON.parse(
    execFileSync(process.execPath, ['-e', script, join(home, file)], {
      encoding: 'utf8',
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    }),
  ) as { check: { integrity_check: string }[]; open: number; intents: number }
  const problems: string[] = []
  if (output.check[0]?.integrity_check !== 'ok') problems.push(`integrity check: ${JSON.stringify(output.check)}`)
  if (output.open > 0) problems.push(`${output.open} turns never ended`)
  if (output.intents > 0) problems.push(`${output.intents} effects have no outcome`)
  return problems
}

/** Every acknowledged call of the tool ran, and none ran twice. */
function examineMarks(file: string, acknowledged: Acknowledged): string[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : []
  const problems: string[] = []
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  for (const [label, times] of counts) if (times > 1) problems.push(`the tool ran ${times} times for ${label}`)
  for (const { message } of acknowledged.answers) {
    const label = /"label":"([^"]+)"/.exec(message)?.[1]
    if (label && !counts.has(label)) problems.push(`the tool never ran for ${label}`)
  }
  return problems
}
