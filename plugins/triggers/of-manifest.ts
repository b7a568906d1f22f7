import { stableId } from 'svc/internal'
import { parse, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent, Changing, Manifest, SpawnAuthor, Spawning } from '../agents/contract.ts'
import { isLabel } from '../sessions/contract.ts'
import { TriggerBody } from './body.ts'
import type { TriggerStore } from './definitions/store.ts'
import type { Author, Triggers } from './service.ts'
import type { Trigger } from './trigger.ts'

interface Deps {
  readonly triggers: Triggers
  readonly store: TriggerStore
  readonly maxPerAgent: number
  readonly background: (work: () => Promise<void>) => void
  /** Triggers were changed. */
  readonly changed: () => void
}
/** A trigger that a manifest names, and the key it stands in. */
interface Wanted {
  readonly id: string
  readonly path: string
  readonly body: TriggerBody
}

/** Makes `triggers` and `schedule.proactive` of a manifest triggers, in the batch that makes or changes the agent. */
export class ManifestTriggers {
  readonly #deps: Deps
  constructor(deps: Deps) {
    this.#deps = deps
  }

  async addTo(spawning: Spawning): Promise<Spawning> {
    const { agent, statements, by, isResting = false } = spawning
    const wanted = this.#wantedBy(agent)
    const made = await this.#batch(agent, [], wanted, { ...(by && authorOf(by)), isResting })
    return { ...spawning, statements: [...statements, ...made] }
  }

  /** One that says the same stays as it is, with what a person did to it. */
  async change(changing: Changing): Promise<Changing> {
    const { before, agent, statements, isWhole } = changing
    const isSame = JSON.stringify(tablesOf(before.manifest)) === JSON.stringify(tablesOf(agent.manifest))
    if (isSame && !isWhole) return changing
    const wanted = this.#wantedBy(agent)
    const old = new Set(tablesOf(before.manifest).map(({ table }) => idOf(agent.id, table)))
    const gone = [...old].filter((id) => !wanted.some((one) => one.id === id))
    const there = await this.#find(wanted.map(({ id }) => id))
    const isNew = ({ id }: Wanted): boolean => !there.some((one) => one.id === id) && (isWhole || !old.has(id))
    const more = await this.#batch(agent, await this.#find(gone), wanted.filter(isNew), {})
    return { ...changing, statements: [...statements, ...more] }
  }

  /** Those of the manifest go with the agent. */
  async removeFrom(killing: { readonly agent: Agent; readonly statements: readonly Statement[] }) {
    const { agent, statements } = killing
    const ids = tablesOf(agent.manifest).map(({ table }) => idOf(agent.id, table))
    return { agent, statements: [...statements, ...(await this.#batch(agent, await this.#find(ids), [], {}))] }
  }

  async #find(ids: readonly string[]): Promise<readonly Trigger[]> {
    const found = await Promise.all(ids.map((id) => this.#deps.triggers.find(id)))
    return found.filter((one) => one !== undefined)
  }

  async #batch(
    agent: Agent,
    gone: readonly Trigger[],
    added: readonly Wanted[],
    { isResting = false, ...author }: Author & { readonly isResting?: boolean },
  ): Promise<readonly Statement[]> {
    const { triggers, store, background, changed } = this.#deps
    if (gone.length + added.length === 0) return []
    if (added.length > 0) await triggers.checkRoom(agent, gone.length, added.length)
    const removals = await Promise.all(gone.map((trigger) => triggers.removing(trigger)))
    const written = (): void => {
      changed()
      for (const { after } of removals) background(after)
    }
    const made: Statement[] = []
    for (const { id, path, body } of added)
      made.push(
        ...(await within(path, triggers.prepare(isResting ? { ...body, enabled: false } : body, id, agent, author))),
      )
    return [{ ...store.touch(), written }, ...removals.flatMap(({ statements }) => statements), ...made]
  }

  /** Throws `invalid_request` that names the key. */
  #wantedBy({ id: agentId, manifest }: Agent): readonly Wanted[] {
    const { maxPerAgent: max } = this.#deps
    const tables = tablesOf(manifest)
    if (manifest.triggers.length > max)
      throw refuse('triggers', `at most ${max} (plugins.triggers.max_triggers_per_agent)`)
    const wanted = tables.map(({ path, table }): Wanted => ({
      id: idOf(agentId, table),
      path,
      body: read(path, table),
    }))
    wanted.forEach(({ id, path }, at) => {
      const first = wanted.findIndex((one) => one.id === id)
      if (first < at) throw refuse(path, `is the same as ${wanted[first]?.path}`)
    })
    return wanted
  }
}

/** The same for what says the same, so that what is moved in the manifest is the same trigger. */
const idOf = (agentId: string, table: unknown): string =>
  stableId('trigger-of-manifest', agentId, JSON.stringify(table))

/** What a manifest names, as bodies of `POST /api/triggers`, or the text of a condition that is none. */
function tablesOf({ triggers, schedule }: Manifest): readonly { readonly path: string; readonly table: unknown }[] {
  const { conditions = [], prompt } = (schedule === 'reactive' ? undefined : schedule.proactive) ?? {}
  return [
    ...triggers.map((table, at) => ({ path: `triggers.${at}`, table })),
    ...conditions.map((condition, at) => ({
      path: `schedule.proactive.conditions.${at}`,
      table: { condition, ...(prompt === undefined ? {} : { prompt_template: prompt }) },
    })),
  ]
}

function read(path: string, table: unknown): TriggerBody {
  try {
    const { agent_id: _, condition, ...body } = table as Readonly<Record<string, unknown>>
    if (typeof condition === 'string') return parse(TriggerBody, { ...body, pattern: patternOf(path, condition) })
    if (body['pattern'] === undefined) throw refuse(`${path}.pattern`, 'is missing')
    return parse(TriggerBody, body)
  } catch (error) {
    throw named(path, error)
  }
}

/** As compatible services write them. */
const CONDITION = /^(event|memory|content):(.+)$/s
const EVENTS: ReadonlySet<string> = new Set([
  'lifecycle',
  'system',
  'agent_spawned',
  'agent_terminated',
  'memory_update',
])
function patternOf(path: string, condition: string): TriggerBody['pattern'] {
  const text = condition.trim()
  if (text.toLowerCase() === 'all') return 'all'
  const [, kind, rest = ''] = CONDITION.exec(text) ?? []
  const value = rest.trim()
  if (kind === 'memory') return { memory_key_pattern: { key_pattern: value } }
  if (kind === 'content') return { content_match: { substring: value } }
  if (kind === 'event')
    return EVENTS.has(value.toLowerCase()) ? value.toLowerCase() : { system_keyword: { keyword: value } }
  throw refuse(path, `expected all, event:…, memory:… or content:…, such as event:agent_spawned or memory:user.*`)
}

const authorOf = ({ agentId, onBehalf, labels }: SpawnAuthor): Author => ({
  agentId,
  onBehalf,
  labels: labels.filter(isLabel),
})

async function within(path: string, prepared: ReturnType<Triggers['prepare']>): Promise<readonly Statement[]> {
  try {
    return (await prepared).statements
  } catch (error) {
    throw named(path, error)
  }
}
/** What is wrong with a trigger is a wrong value of the manifest. */
function named(path: string, error: unknown): unknown {
  if (!(error instanceof Refusal) || error.message.startsWith(path)) return error
  const [, field, reason = error.message] = /^([a-z_.\d]+): (.*)$/s.exec(error.message) ?? []
  if (error.code === 'agent_not_found') return refuse(`${path}.target_agent_id`, error.message, error)
  if (error.code === 'workflow_not_found') return refuse(`${path}.workflow_id`, error.message, error)
  if (error.code !== 'invalid_request') return error
  const isCondition = path.startsWith('schedule.')
  return refuse(field === undefined || isCondition ? path : `${path}.${field}`, reason, error)
}
const refuse = (path: string, message: string, cause?: unknown): Refusal =>
  new Refusal('invalid_request', `${path}: ${message}`, { details: { issues: [{ path, message }] }, cause })
