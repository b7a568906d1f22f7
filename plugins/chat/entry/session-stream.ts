import type { ServerSentEvent } from 'svc/sdk'
import { readOwnJson } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Message } from '../../sessions/contract.ts'
import type { TurnEvent } from '../contract.ts'
import { encodeEvent, encodeFailure } from './encode-sse.ts'
import type { LiveTurn } from '../turn/live-turn.ts'
import type { SettledBy } from '../turn/record.ts'

/** A follower further behind is disconnected and comes back for a snapshot. */
const MAX_TURNS_BEHIND = 16
const MAX_EVENTS_BEHIND = 64

/** A turn of this daemon, or of another one. */
export type FollowedTurn = Pick<LiveTurn, 'id' | 'sessionId' | 'entryPoint' | 'onDisk' | 'events' | 'snapshot'>

export interface SessionStreamDeps {
  /** The turns of a session that wait or run, the running one first. */
  readonly turns: (sessionId: string) => readonly FollowedTurn[] | Promise<readonly FollowedTurn[]>
  readonly message: (turn: FollowedTurn) => Promise<Message | undefined>
  /** Somebody follows a session that nobody followed, or nobody does any more. */
  readonly followedChanged: () => void
  /** Followers of all sessions together. */
  readonly max: number
}

/** Streams the turns of a session to its followers, whatever entry point they came by. */
export class SessionStream {
  readonly #deps: SessionStreamDeps
  readonly #followers = new Map<string, Set<Follower>>()
  #count = 0
  constructor(deps: SessionStreamDeps) {
    this.#deps = deps
  }

  get followers(): number {
    return this.#count
  }

  /** Sessions that somebody follows. */
  get sessionIds(): readonly string[] {
    return [...this.#followers.keys()]
  }

  /** A turn is in its session's queue; followers see it once it is on disk. */
  accepted(turn: FollowedTurn, onDisk: Promise<unknown>): void {
    if (!this.#followers.has(turn.sessionId)) return
    onDisk.then(
      () => {
        for (const follower of this.#followers.get(turn.sessionId) ?? []) follower.add(turn)
      },
      () => undefined /* It was refused; its entry point reports that. */,
    )
  }
  /** Another session of the agent is the active one. */
  activeChanged(agentId: string, sessionId: string): void {
    for (const followers of this.#followers.values())
      for (const follower of followers) if (follower.agentId === agentId) follower.activeChanged(sessionId)
  }
  /** A failed message of a session was retried or dropped: it is shown no more. */
  settled(sessionId: string, turnId: string, how: SettledBy): void {
    this.show(sessionId, how, { turn_id: turnId })
  }
  /** The messages of a session are gone. */
  cleared(sessionId: string): void {
    this.show(sessionId, 'cleared', {})
  }
  show(sessionId: string, event: string, data: object): void {
    for (const follower of this.#followers.get(sessionId) ?? []) follower.send(event, data)
  }
  /** Events may be missing: those who follow connect again, for a snapshot. */
  missed(): void {
    for (const followers of this.#followers.values()) for (const follower of followers) follower.fallBehind()
  }

  /** Throws `rate_limit` when too many follow. `activeId` is the agent's active session. */
  follow(
    {
      sessionId,
      agentId,
      activeId,
    }: { readonly sessionId: string; readonly agentId: string; readonly activeId: string },
    signal: AbortSignal,
  ): AsyncIterable<ServerSentEvent> {
    if (this.#count >= this.#deps.max)
      throw new Refusal(
        'rate_limit',
        `${this.#deps.max} followers of sessions are the most (plugins.chat.session_followers)`,
        {
          retryAfterSecs: 5,
        },
      )
    const follower = new Follower({ ...this.#deps, sessionId, agentId, activeId }, signal, () => {
      const known = this.#followers.get(sessionId)
      if (!known?.delete(follower)) return
      this.#count--
      if (known.size > 0) return
      this.#followers.delete(sessionId)
      this.#deps.followedChanged()
    })
    this.#count++
    const others = this.#followers.get(sessionId)
    if (others) others.add(follower)
    else {
      this.#followers.set(sessionId, new Set([follower]))
      this.#deps.followedChanged()
    }
    return follower
  }
}

/**
 * One stream. It holds what its reader has not taken: a few events, and for every turn a position in that turn's log.
 */
class Follower implements AsyncIterable<ServerSentEvent>, AsyncIterator<ServerSentEvent> {
  readonly agentId: string
  readonly #deps: Omit<SessionStreamDeps, 'max'> & { readonly sessionId: string; readonly activeId: string }
  readonly #leave: () => void
  readonly #known = new Set<string>()
  readonly #waiting: ServerSentEvent[] = []
  #turns: { readonly turn: FollowedTurn; readonly reader: AsyncIterator<TurnEvent> }[] = []
  #step: Promise<IteratorResult<TurnEvent>> | undefined
  #wake: (() => void) | undefined
  #activeId: string
  #begun = false
  #left = false
  #behind = false

  constructor(
    deps: Omit<SessionStreamDeps, 'max'> & {
      readonly sessionId: string
      readonly agentId: string
      readonly activeId: string
    },
    signal: AbortSignal,
    leave: () => void,
  ) {
    this.agentId = deps.agentId
    this.#activeId = deps.activeId
    this.#deps = deps
    this.#leave = leave
    signal.addEventListener('abort', () => void this.return(), { once: true })
  }

  [Symbol.asyncIterator](): AsyncIterator<ServerSentEvent> {
    return this
  }

  /** Called for every change of the agent; only a new active session matters here. */
  activeChanged(sessionId: string): void {
    if (this.#activeId === sessionId) return
    this.#activeId = sessionId
    if (this.#begun) this.send('active', { session_id: sessionId })
  }
  send(event: string, data: object): void {
    if (this.#waiting.length >= MAX_EVENTS_BEHIND) this.#behind = true
    else this.#waiting.push(encode(event, data))
    this.#wake?.()
  }
  fallBehind(): void {
    this.#behind = true
    this.#wake?.()
  }
  add(turn: FollowedTurn): void {
    if (this.#known.has(turn.id) || this.#left) return
    this.#known.add(turn.id)
    if (this.#turns.length >= MAX_TURNS_BEHIND) this.#behind = true
    else this.#turns.push({ turn, reader: turn.events()[Symbol.asyncIterator]() })
    this.#deps.message(turn).then(
      (message) => this.send('message', describe(turn, message)),
      // The follower comes back for a snapshot.
      () => this.fallBehind(),
    )
  }

  async next(): Promise<IteratorResult<ServerSentEvent>> {
    if (!this.#begun) {
      this.#begun = true
      return { done: false, value: await this.#snapshot() }
    }
    for (;;) {
      if (this.#left) return { done: true, value: undefined }
      const waiting = this.#waiting.shift()
      if (waiting) return { done: false, value: waiting }
      if (this.#behind)
        throw new Refusal('service_unavailable', 'This reader is too far behind; connect again', { retryAfterSecs: 1 })
      const value = await this.#nextOfTurn()
      if (value) return { done: false, value }
    }
  }
  return(): Promise<IteratorResult<ServerSentEvent>> {
    this.#left = true
    this.#leave()
    for (const { reader } of this.#turns.splice(0)) void reader.return?.()
    this.#wake?.()
    return Promise.resolve({ done: true, value: undefined })
  }

  /** `undefined` when something else has to be looked at first. */
  async #nextOfTurn(): Promise<ServerSentEvent | undefined> {
    const [first] = this.#turns
    const woken = new Promise<undefined>((resolve) => {
      this.#wake = () => resolve(undefined)
    })
    if (!first) return woken
    const { turn, reader } = first
    try {
      this.#step ??= reader.next()
      const step = await Promise.race([this.#step, woken])
      if (!step) return undefined
      this.#step = undefined
      if (!step.done) return encodeEvent(step.value, turn.id)
    } catch (error) {
      this.#step = undefined
      this.#turns.shift()
      return encodeFailure(error, turn.id)
    }
    this.#turns.shift()
    return undefined
  }

  /** The present state, with the text of the running turn so far, so that a reader that joins sees the whole answer. */
  async #snapshot(): Promise<ServerSentEvent> {
    const found = this.#deps.turns(this.#deps.sessionId)
    const all = found instanceof Promise ? await found : found
    // Before that there is no message to show.
    const written = await Promise.allSettled(all.map(({ onDisk }) => onDisk))
    const isNew = ({ id }: FollowedTurn, at: number): boolean =>
      written[at]?.status === 'fulfilled' && !this.#known.has(id)
    const live = all.filter(isNew).slice(0, MAX_TURNS_BEHIND)
    for (const { id } of live) this.#known.add(id)
    const messages = await Promise.all(live.map((turn) => this.#deps.message(turn)))
    const sent: ServerSentEvent[] = []
    this.#turns = [
      ...live.map((turn, at) => {
        const { events, rest } = at === 0 ? turn.snapshot() : { events: [], rest: turn.events() }
        sent.push(...events.flatMap((event) => encodeEvent(event, turn.id) ?? []))
        return { turn, reader: rest[Symbol.asyncIterator]() }
      }),
      ...this.#turns,
    ]
    return encode('snapshot', {
      session_id: this.#deps.sessionId,
      agent_id: this.agentId,
      active_session_id: this.#activeId,
      turns: live.map((turn, at) => describe(turn, messages[at])),
      events: sent.map(({ event, data }) => ({ event, data: readOwnJson(data) })),
    })
  }
}

function describe(turn: FollowedTurn, message: Message | undefined): object {
  return {
    turn_id: turn.id,
    entry_point: turn.entryPoint,
    message_id: message?.id ?? null,
    content: (message?.blocks ?? []).flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n'),
    images: (message?.blocks ?? []).filter(({ type }) => type === 'image').length,
    created_at: message?.createdAt ?? null,
  }
}
function encode(event: string, data: object): ServerSentEvent {
  return { event, data: JSON.stringify({ type: event, ...data }) }
}
