import { ApiError, explain, pageMessages } from './api.ts'
import type { Api } from './api.ts'
import { Connection } from './connection.ts'
import { Observable } from './observable.ts'
import {
  ask,
  detach,
  emptyTranscript,
  fail,
  fromRecord,
  lastQuestion,
  markStopped,
  openAnswer,
  receive,
  unaccounted,
  withAccount,
  withoutLastExchange,
} from './transcript.ts'
import type { Transcript } from './transcript.ts'
import { Whereabouts } from './whereabouts.ts'
import type { AgentSummary, ServerFrame, SessionMessage, SessionView } from './wire.ts'

export type History = 'loading' | 'loaded' | { readonly problem: string }

/** Turns that are looked up when a conversation is opened. */
const mostTurns = 20
const recordedDelaysMs = [1000, 1000, 2000, 3000, 5000, 8000, 13_000, 21_000]

/** The conversation with one agent: what is shown, and the connection it travels over. */
export class AgentChat {
  readonly agentId: string
  readonly transcript = new Observable<Transcript>(emptyTranscript)
  /** Whether the session holds messages older than those shown. */
  readonly more = new Observable(false)
  readonly history = new Observable<History>('loading')
  readonly connection: Connection
  readonly whereabouts: Whereabouts
  readonly #api: Api
  readonly #onAgents: (agents: readonly AgentSummary[]) => void
  readonly #onApproval: () => void
  #streaming: AbortController | undefined
  /** Messages older than the newest page, when they were asked for. */
  #earlier: readonly SessionMessage[] = []
  #newest: SessionView | undefined
  /** Something was sent before the session was read: what came before is still to be shown. */
  #unread = false
  /** Counts the exchanges started here, so that a slow load never overwrites a newer one. */
  #era = 0
  #shown = false
  /** Turns that were looked up. */
  readonly #asked = new Set<string>()

  constructor(
    agentId: string,
    api: Api,
    parts: {
      readonly reachable: () => Promise<boolean>
      readonly onAgents: (agents: readonly AgentSummary[]) => void
      readonly onApproval: () => void
    },
  ) {
    this.agentId = agentId
    this.#api = api
    this.#onAgents = parts.onAgents
    this.#onApproval = parts.onApproval
    this.whereabouts = new Whereabouts(async () => {
      const turns = await api.turns(agentId)
      const open = openAnswer(this.transcript.value)?.turnId
      return (
        turns.find(({ turn_id: id }) => id === open) ??
        turns.find(({ state }) => state === 'queued' || state === 'running' || state === 'waiting')
      )
    })
    // Whatever changes while an answer is open is a word of it.
    this.transcript.watch(() => {
      if (this.busy) this.whereabouts.heard()
      else this.whereabouts.end()
    })
    this.connection = new Connection({
      open: () => api.socket(agentId),
      reachable: parts.reachable,
      onFrame: (frame) => this.#receive(frame),
      onReopened: () => {
        void this.#waitForRecord()
      },
      onDropped: () => {
        if (!this.#streaming) this.transcript.update(detach)
      },
    })
  }

  get busy(): boolean {
    return openAnswer(this.transcript.value) !== undefined
  }

  show(): void {
    this.#shown = true
    this.connection.start()
    if (!this.busy) void this.load()
  }

  /** A connection stays while an answer is on its way over it. */
  hide(): void {
    this.#shown = false
    if (!this.busy) this.connection.close()
  }

  end(): void {
    this.#era++
    this.#shown = false
    this.whereabouts.end()
    this.#streaming?.abort()
    this.connection.close()
  }

  async load(): Promise<void> {
    const era = this.#era
    try {
      const view = await this.#api.session(this.agentId)
      if (era !== this.#era || this.busy) return
      this.transcript.update((known) => fromRecord(this.#recorded(view), known))
      this.history.set('loaded')
      this.#unread = false
      void this.#readTurns()
    } catch (error) {
      if (era === this.#era && this.history.value !== 'loaded') this.history.set({ problem: explain(error) })
      return
    }
    if (this.transcript.value.entries.at(-1)?.kind === 'answer') void this.#waitForRecord()
  }

  /** Puts the page of messages before the oldest one shown in front of it. Throws what the daemon refused. */
  async loadEarlier(): Promise<void> {
    const oldest = this.#earlier[0] ?? this.#newest?.messages[0]
    if (oldest?.id === undefined || this.busy) return
    const era = this.#era
    const view = await this.#api.session(this.agentId, oldest.id)
    if (era !== this.#era || this.#newest === undefined) return
    this.#earlier = [...view.messages, ...this.#earlier]
    const messages = [...this.#earlier, ...this.#newest.messages]
    this.more.set(view.messages.length > 0)
    // Entries are told apart by their place, and every place has moved.
    this.transcript.update((known) => fromRecord(messages, { entries: [], nextId: known.nextId }))
    this.#asked.clear()
    void this.#readTurns()
  }

  send(text: string): void {
    if (this.busy || text.trim() === '') return
    this.#era++
    this.#unread ||= this.history.value !== 'loaded'
    this.history.set('loaded')
    this.transcript.update((transcript) => ask(transcript, text))
    if (!this.connection.send({ type: 'message', content: text })) void this.#sendOverHttp(text)
  }

  retry(): void {
    const question = lastQuestion(this.transcript.value)
    if (!question || this.busy) return
    this.transcript.update(withoutLastExchange)
    this.send(question.text)
  }

  async stop(): Promise<void> {
    try {
      await this.#api.stop(this.agentId)
    } catch (error) {
      this.transcript.update((transcript) => fail(transcript, `Could not stop: ${explain(error)}`))
    }
  }

  /** Throws what the daemon refused. */
  async reset(): Promise<void> {
    await this.#api.reset(this.agentId)
    this.#era++
    this.#earlier = []
    this.#newest = undefined
    this.more.set(false)
    this.transcript.set({ ...emptyTranscript, nextId: this.transcript.value.nextId })
    this.history.set('loaded')
  }

  /** The messages to show: those of a session read anew, behind the earlier ones that were asked for. */
  #recorded(view: SessionView): readonly SessionMessage[] {
    const first = view.messages[0]?.id
    const sameSession = this.#newest?.session_id === view.session_id
    const known = sameSession ? [...this.#earlier, ...(this.#newest?.messages ?? [])] : []
    const overlap = known.findIndex(({ id }) => id !== undefined && id === first)
    this.#earlier = overlap > 0 ? known.slice(0, overlap) : []
    this.#newest = view
    if (this.#earlier.length === 0) this.more.set(view.message_count > pageMessages)
    return [...this.#earlier, ...view.messages]
  }

  #receive(frame: ServerFrame): void {
    if (frame.type === 'agents_updated') return this.#onAgents(frame.agents)
    if (frame.type === 'approval') return this.#onApproval()
    const question = lastQuestion(this.transcript.value)?.text ?? ''
    const wasBusy = this.busy
    this.transcript.update((transcript) => receive(transcript, frame))
    if (!wasBusy || this.busy) return
    // The daemon keeps no record of a command's reply, and `/new` leaves an empty session behind.
    if (frame.type === 'response' && /^\/(new|reset)\b/.test(question))
      this.transcript.update((transcript) => ({ ...transcript, entries: transcript.entries.slice(-1) }))
    if (!this.#shown) return this.connection.close()
    // Where a call's result did not travel with the answer, the session has it.
    if (frame.type === 'response' && (this.#unread || lacksResults(this.transcript.value))) void this.load()
  }

  async #sendOverHttp(text: string): Promise<void> {
    if (/^\/[a-z]+(\s|$)/i.test(text)) {
      // Sent as a message it would go to the model.
      if (/^\/(new|reset)\b/.test(text))
        return this.reset().catch((error: unknown) =>
          this.transcript.update((transcript) => fail(transcript, explain(error))),
        )
      return this.transcript.update((transcript) =>
        fail(transcript, 'Commands need a WebSocket, and none can be opened from here.'),
      )
    }
    const streaming = new AbortController()
    this.#streaming = streaming
    try {
      for await (const frame of this.#api.answer(this.agentId, text, streaming.signal)) this.#receive(frame)
      // An answer that ends without its last event was cut.
      if (this.busy) this.transcript.update(detach)
    } catch (error) {
      if (streaming.signal.aborted) this.transcript.update(markStopped)
      else if (error instanceof ApiError) this.transcript.update((transcript) => fail(transcript, explain(error)))
      else this.transcript.update(detach)
    } finally {
      if (this.#streaming === streaming) this.#streaming = undefined
    }
    void this.#waitForRecord()
  }

  /** Who gave the newest recorded answers, what they cost, and why there is none. */
  async #readTurns(): Promise<void> {
    for (const turnId of unaccounted(this.transcript.value)
      .filter((id) => !this.#asked.has(id))
      .slice(0, mostTurns)) {
      this.#asked.add(turnId)
      try {
        const turn = await this.#api.turn(this.agentId, turnId)
        if (turn.state === 'queued' || turn.state === 'running' || turn.state === 'waiting') this.#asked.delete(turnId)
        else this.transcript.update((known) => withAccount(known, turnId, turn))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error // Without its figures it is still an answer.
        return
      }
    }
  }

  /** A turn runs to its end on the daemon whoever listens: an answer this page lost is read from the session when it is there. */
  async #waitForRecord(): Promise<void> {
    const era = this.#era
    for (const delayMs of recordedDelaysMs) {
      const last = this.transcript.value.entries.at(-1)
      if (era !== this.#era || last?.kind !== 'answer' || (last.state !== 'detached' && last.state !== 'unanswered'))
        return
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      if (era !== this.#era || !this.#shown) return
      try {
        const view = await this.#api.session(this.agentId)
        if (era !== this.#era || this.busy) return
        if (view.messages.at(-1)?.role === 'Assistant')
          this.transcript.update((known) => fromRecord(this.#recorded(view), known))
        // Or it failed, which is no message.
        await this.#readTurns()
      } catch (error) {
        if (!(error instanceof ApiError)) throw error // Unreachable for now: the next round asks again.
      }
    }
  }
}

function lacksResults(transcript: Transcript): boolean {
  const last = transcript.entries.at(-1)
  return last?.kind === 'answer' && last.parts.some((part) => part.kind === 'tool' && part.call.result === undefined)
}
