import { messageOf, stableId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Kind, LeftBehind, SourceHome } from '../model.ts'
import { shownReport } from '../report.ts'
import type { ImportedThing, Report } from '../report.ts'
import type { ItemStore } from '../store.ts'

/** What a person wants to come over. */
export interface Wanted {
  readonly agents: boolean
  readonly keys: boolean
  readonly skills: boolean
  readonly sessions: boolean
  readonly channels: boolean
  readonly automation: boolean
}

/** The state of one run: what was made, what was there already, and what stays behind. */
export class Run {
  readonly id: string
  readonly home: SourceHome
  readonly wanted: Wanted
  readonly isDryRun: boolean
  readonly startedAt: string
  /** Of the things that are counted in `done`. */
  readonly total: number
  done = 0
  readonly imported: ImportedThing[] = []
  readonly unchanged: ImportedThing[] = []
  readonly left: LeftBehind[]
  readonly warnings: string[]
  /** Names of agents here by their keys there; absent where there is none here. */
  readonly agents = new Map<string, { readonly id: string; readonly name: string }>()
  readonly #store: ItemStore
  constructor(
    deps: {
      readonly id: string
      readonly home: SourceHome
      readonly wanted: Wanted
      readonly isDryRun: boolean
      readonly startedAt: string
    },
    store: ItemStore,
  ) {
    const { home } = deps
    this.id = deps.id
    this.home = home
    this.wanted = deps.wanted
    this.isDryRun = deps.isDryRun
    this.startedAt = deps.startedAt
    this.left = [...home.left]
    this.warnings = [...home.warnings]
    this.#store = store
    const { agents, keys, skills, sessions, channels, automation } = deps.wanted
    const lists = [
      home.agents,
      ...(agents ? [home.settings, home.values] : []),
      ...(keys ? [home.keys] : []),
      ...(skills ? [home.skills] : []),
      ...(sessions ? [home.sessions] : []),
      ...(channels ? [home.channels] : []),
      ...(automation ? [home.workflows, home.jobs, home.triggers] : []),
    ]
    this.total = lists.reduce((sum, list) => sum + list.length, 0)
  }

  /** Of a thing of this source: the same in every run. */
  itemId(kind: Kind, key: string): string {
    return stableId('migrate', this.home.type, this.home.path, kind, key)
  }
  /** What was made of it before; then it is not made again, also when it was removed here since. */
  async before(kind: Kind, key: string, name: string): Promise<string | undefined> {
    const target = await this.#store.target(this.itemId(kind, key))
    if (target === undefined || target === '') return undefined
    this.unchanged.push({ kind, name, destination: target })
    return target
  }
  /** The same of one of many that the report counts: by `madeMany`. */
  async wasMade(kind: Kind, key: string): Promise<boolean> {
    return ((await this.#store.target(this.itemId(kind, key))) ?? '') !== ''
  }
  /**
   * For what is not made in the batch that records it: writes down that it will be, once nothing of its name is here.
   * `wasBegun`: what is here of its name is that of a run that was killed.
   */
  async wasBegun(kind: Kind, key: string): Promise<boolean> {
    return (await this.#store.target(this.itemId(kind, key))) === ''
  }
  async begin(kind: Kind, key: string, name: string): Promise<void> {
    await this.keep(kind, key, name, '')
  }
  /** For the batch that makes it. */
  row(kind: Kind, key: string, name: string, target: string) {
    return this.#store.insert({
      id: this.itemId(kind, key),
      runId: this.id,
      kind,
      name,
      target,
      at: new Date().toISOString(),
    })
  }
  async keep(kind: Kind, key: string, name: string, target: string): Promise<void> {
    await this.#store.commit([this.row(kind, key, name, target)])
  }
  /** Several of them in one commit. */
  async keepAll(
    items: readonly { readonly kind: Kind; readonly key: string; readonly name: string; readonly target: string }[],
  ): Promise<void> {
    await this.#store.commit(items.map(({ kind, key, name, target }) => this.row(kind, key, name, target)))
  }
  made(kind: Kind, name: string, destination: string): void {
    this.imported.push({ kind, name, destination })
  }
  /** Things of one owner, which are one line of the report. */
  madeMany(kind: 'memory' | 'value', name: string, counts: { readonly made: number; readonly before: number }): void {
    const noun = { memory: ['memory', 'memories'], value: ['value', 'values'] }[kind]
    const many = (count: number): string => `${count} ${noun[count === 1 ? 0 : 1]}`
    if (counts.made > 0) this.made(kind, name, many(counts.made))
    if (counts.before > 0) this.unchanged.push({ kind, name, destination: many(counts.before) })
  }
  leave(kind: Kind, name: string, reason: string): void {
    this.left.push({ kind, name, reason })
  }
  warn(text: string): void {
    this.warnings.push(text)
  }

  /** One thing: what is wrong with it alone leaves it behind, and what is wrong with the daemon ends the run. */
  async attempt(kind: Kind, name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof Refusal) || error.code === 'service_unavailable') throw error
      this.leave(kind, name, reasonOf(error))
    } finally {
      this.done++
    }
  }

  report(endedAt: string, error: string | undefined): Report {
    const { id: runId, home, isDryRun, startedAt, imported, unchanged, left, warnings } = this
    const { type, path, version } = home
    const things = { imported, unchanged, left, warnings }
    return shownReport({ runId, type, path, version, isDryRun, startedAt, endedAt, error, ...things }, home)
  }
}

export function reasonOf(error: unknown): string {
  const details = error instanceof Refusal ? error.details : undefined
  const accept = details?.['permissions']
  const more = Array.isArray(accept) ? ` (${accept.map(String).join(', ')})` : ''
  return `${messageOf(error)}${more}`
}
