import { KeyedQueue, Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import { removeFolder } from 'svc/internal'
import { Session } from './session.ts'
import type { SessionDeps } from './session.ts'

export interface BrowsersDeps extends SessionDeps {
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Called when a browser was opened, with `null`, or has ended, with why. */
  readonly changed: (agentId: string, reason: string | null) => void
}
/** What an agent looks at now. */
export interface Looking {
  readonly url: string
  readonly title: string
}
interface Held {
  readonly session: Session
  idle: NodeJS.Timeout | undefined
  lastUsedAt: string
  /** How many steps run or wait. */
  uses: number
  looking: Looking
}
export interface BrowserView extends Looking {
  readonly agentId: string
  readonly startedAt: string
  readonly lastUsedAt: string
}

const MAX_REASONS = 1000

/** The browsers of this daemon: one for each agent that asked for one, each closed when nobody uses it. */
export class Browsers {
  readonly #deps: BrowsersDeps
  readonly #held = new Map<string, Held>()
  readonly #opening = new Set<string>()
  /** Why the last browser of an agent has ended, until it opens another. */
  readonly #reasons = new Map<string, string>()
  readonly #steps = new KeyedQueue()
  /** The removal of what a crash left. */
  #cleaned: Promise<void> | undefined

  constructor(deps: BrowsersDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#held.size
  }
  list(): readonly BrowserView[] {
    return [...this.#held.values()].map(({ session: { agentId, startedAt }, lastUsedAt, looking }) => ({
      agentId,
      startedAt,
      lastUsedAt,
      ...looking,
    }))
  }
  find(agentId: string): BrowserView | undefined {
    return this.list().find((one) => one.agentId === agentId)
  }
  isBusy(agentId: string): boolean {
    return (this.#held.get(agentId)?.uses ?? 0) > 0 || this.#opening.has(agentId)
  }

  /**
   * Works with the browser of an agent, one step after the other. `opens`: makes one when there is none; throws
   * `rate_limit` beyond `max_sessions`. Otherwise throws `conflict` when there is none.
   */
  use<T>(agentId: string, opens: boolean, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#steps.run(agentId, async () => {
      signal.throwIfAborted()
      const last = this.#held.get(agentId)
      if (last?.session.isOver) await last.session.ended
      const held = this.#held.get(agentId) ?? (opens ? await this.#open(agentId, signal) : this.#refuse(agentId))
      held.uses++
      clearTimeout(held.idle)
      try {
        return await work(held.session)
      } finally {
        held.uses--
        held.lastUsedAt = new Date().toISOString()
        this.#restartIdle(held)
      }
    })
  }
  /** Looks on: waits for the steps that run, and counts for none. `undefined` when there is no browser. */
  watch<T>(agentId: string, work: (session: Session) => Promise<T>): Promise<T | undefined> {
    return this.#steps.run(agentId, async () => {
      const held = this.#held.get(agentId)
      return held && !held.session.isOver ? work(held.session) : undefined
    })
  }
  looksAt(agentId: string, looking: Looking): void {
    const held = this.#held.get(agentId)
    if (held) held.looking = looking
  }

  /** Whether there was one. */
  async close(agentId: string, reason: string): Promise<boolean> {
    const held = this.#held.get(agentId)
    if (!held) return false
    await held.session.end(reason)
    await held.session.ended
    return true
  }
  forget(agentId: string): void {
    this.#reasons.delete(agentId)
  }
  async closeAll(reason: string): Promise<void> {
    await Promise.all([...this.#held.keys()].map((agentId) => this.close(agentId, reason)))
  }
  async recheck(agentId: string): Promise<void> {
    await this.#held.get(agentId)?.session.recheckNetwork()
  }

  async #open(agentId: string, signal: AbortSignal): Promise<Held> {
    const { log, changed, folder, settings } = this.#deps
    const open = this.#held.size + this.#opening.size
    if (open >= settings.max_sessions)
      throw new Refusal(
        'rate_limit',
        `${open} browsers are open, the limit of plugins.browser.max_sessions: one has to be closed first`,
      )
    this.#opening.add(agentId)
    try {
      // Once: another browser may be opening in it already.
      await (this.#cleaned ??= removeFolder(folder))
      const session = await Session.open(this.#deps, agentId, signal)
      await this.#requireAgent(session)
      const held: Held = {
        session,
        idle: undefined,
        lastUsedAt: session.startedAt,
        uses: 0,
        looking: { url: '', title: '' },
      }
      this.#held.set(agentId, held)
      this.#reasons.delete(agentId)
      log.info(`a browser was opened for agent ${agentId}`)
      changed(agentId, null)
      void session.ended.then((reason) => {
        clearTimeout(held.idle)
        this.#held.delete(agentId)
        if (this.#reasons.size < MAX_REASONS) this.#reasons.set(agentId, reason)
        log.info(`the browser of agent ${agentId} was closed: ${reason}`)
        return changed(agentId, reason)
      })
      return held
    } finally {
      this.#opening.delete(agentId)
    }
  }
  /** It may have been removed while Chromium started. */
  async #requireAgent(session: Session): Promise<void> {
    try {
      await this.#deps.agents.require(session.agentId)
    } catch (error) {
      await session.end('the agent was removed')
      throw error
    }
  }
  #restartIdle(held: Held): void {
    if (held.session.isOver) return
    const { idle_timeout_secs: secs } = this.#deps.settings
    held.idle = setTimeout(() => void held.session.end(`nothing used it for ${secs} s`), secs * 1000).unref()
  }
  #refuse(agentId: string): never {
    const reason = this.#reasons.get(agentId)
    throw new Refusal(
      'conflict',
      `No page is open${reason === undefined ? '' : ` (the last browser was closed: ${reason})`}. ` +
        'Open one with browser_navigate.',
    )
  }
}
