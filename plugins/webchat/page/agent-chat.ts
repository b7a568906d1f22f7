import { ApiError, explain, MAX_PAGE_MESSAGES } from './api.ts'
import type { Api, NewMessage } from './api.ts'
import { splitAttached } from './attached.ts'
import type { AttachedFile } from './attached.ts'
import { Connection } from './connection.ts'
import { Drafts } from './drafts.ts'
import { Observable } from './observable.ts'
import { Queue } from './queue.ts'
import type { Queued } from './queue.ts'
import {
  answerOf,
  ask,
  detach,
  emptyTranscript,
  entryOf,
  fail,
  fromRecord,
  join,
  lastQuestion,
  markStopped,
  name,
  openAnswer,
  questionOf,
  receive,
  unaccounted,
  unnamed,
  withAccount,
  withoutLastExchange,
  withoutTurn,
} from './transcript.ts'
import type { Transcript } from './transcript.ts'
import { SessionFollower } from './session-follower.ts'
import type { Followed } from './events.ts'
import { TurnStatus } from './turn-status.ts'
import type { AgentSummary, ServerFrame, SessionItem, SessionMessage, SessionView } from './wire.ts'

export type History = 'loading' | 'loaded' | { readonly problem: string }

/** How many turns are looked up when a conversation is opened. */
const maxTurnLookups = 20
/** How old the list of conversations may get. */
const LISTING_MS = 10_000
const recordedDelaysMs = [1000, 1000, 2000, 3000, 5000, 8000, 13_000, 21_000]

/** The conversation with one agent: what is shown, and the connection it travels over. */
export class AgentChat {
  readonly agentId: string
  readonly transcript = new Observable<Transcript>(emptyTranscript)
  /** Whether the session holds messages older than those shown. */
  readonly more = new Observable(false)
  readonly history = new Observable<History>('loading')
  readonly connection: Connection
  readonly turnStatus: TurnStatus
  /** The conversations with this agent, the newest first. */
  readonly sessions = new Observable<readonly SessionItem[]>([])
  /** The conversation in view, and the agent's active one, which messages are sent to. */
  readonly place = new Observable<{ readonly shown: string | undefined; readonly active: string | undefined }>({
    shown: undefined,
    active: undefined,
  })
  /** Messages that wait here, each for its conversation. */
  readonly queue: Queue
  readonly drafts: Drafts
  /** Whether it is known what runs in the session: until then an unanswered message shows no state. */
  readonly known = new Observable(false)
  /** The entry that was searched for. */
  readonly revealed = new Observable<{ readonly entryId: number } | undefined>(undefined)
  readonly #follower: SessionFollower
  /** The turns whose answers come over the socket, or over a request of this page. */
  readonly #own = new Set<string>()
  readonly #api: Api
  readonly #onAgents: (agents: readonly AgentSummary[]) => void
  readonly #onApproval: () => void
  #streaming: AbortController | undefined
  /** Messages older than the newest page, once they were loaded. */
  #earlier: readonly SessionMessage[] = []
  #newest: SessionView | undefined
  /** Something was sent before the session was read: earlier messages are still to be shown. */
  #unread = false
  /** Counts the exchanges started here, so that a slow load never overwrites a newer one. */
  #era = 0
  #shown = false
  #listedAtMs = 0
  /** Another conversation is being opened: what is written meanwhile waits for it. */
  #switching = false
  /** Turns that have been looked up. */
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
    this.queue = new Queue(agentId)
    this.drafts = new Drafts(agentId, (...upload) => api.upload(agentId, ...upload))
    this.place.watch(() => {
      if (this.place.value.shown !== undefined) this.drafts.enter(this.place.value.shown)
    })
    this.#api = api
    this.#onAgents = parts.onAgents
    this.#onApproval = parts.onApproval
    this.turnStatus = new TurnStatus(async () => {
      const turns = await api.turns(agentId)
      const open = openAnswer(this.transcript.value)?.turnId
      return (
        turns.find(({ turn_id: id }) => id === open) ??
        turns.find(({ state }) => state === 'queued' || state === 'running' || state === 'waiting')
      )
    })
    // Whatever changes while an answer is open is a word of it.
    this.transcript.watch(() => {
      if (this.busy) this.turnStatus.heard()
      else this.turnStatus.end()
    })
    this.connection = new Connection({
      open: () => api.socket(agentId),
      reachable: parts.reachable,
      onFrame: (frame) => this.#receive(frame),
      onReopened: () => {
        void this.#waitForRecord()
      },
      onDropped: () => {
        if (this.#streaming) return
        this.#own.clear()
        // The stream of the session may be there still, and its snapshot has what was missed.
        if (this.#follower.open) this.#follower.restart()
        this.transcript.update(detach)
      },
    })
    this.#follower = new SessionFollower(
      api,
      (event) => void this.#followed(event),
      () => this.known.set(true),
    )
    this.transcript.watch(() => this.#sendQueued())
  }

  /** Whether messages are sent to the conversation in view. */
  get here(): boolean {
    const { shown, active } = this.place.value
    return shown === undefined || active === undefined || shown === active
  }

  get busy(): boolean {
    return openAnswer(this.transcript.value) !== undefined
  }

  show(): void {
    this.#shown = true
    this.connection.start()
    void this.listSessions()
    const { shown } = this.place.value
    if (shown !== undefined) this.#follower.follow(shown)
    if (!this.busy) void this.load()
  }

  /** A connection stays while an answer is on its way over it. */
  hide(): void {
    this.#shown = false
    this.#follower.close()
    if (!this.busy) this.connection.close()
  }

  end(): void {
    this.#era++
    this.#shown = false
    this.turnStatus.end()
    this.#streaming?.abort()
    this.#follower.close()
    this.connection.close()
  }
  /** The user signed out: none of their data stays. */
  close(): void {
    this.#follower.close()
    this.connection.close()
  }

  async load(): Promise<void> {
    const era = this.#era
    try {
      const view = await this.#api.session(this.agentId, this.place.value.shown)
      if (era !== this.#era) return
      this.#enter(view)
      if (this.busy) return
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
  async loadEarlier(limit?: number): Promise<void> {
    const oldest = this.#earlier[0] ?? this.#newest?.messages[0]
    if (oldest?.id === undefined || this.busy) return
    const era = this.#era
    const view = await this.#api.session(this.agentId, this.place.value.shown, {
      before: oldest.id,
      ...(limit === undefined ? {} : { limit }),
    })
    if (era !== this.#era || this.#newest === undefined) return
    this.#earlier = [...view.messages, ...this.#earlier]
    const messages = [...this.#earlier, ...this.#newest.messages]
    this.more.set(view.has_earlier)
    // Entries are identified by their position, and every position has changed.
    this.transcript.update((known) => fromRecord(messages, { entries: [], nextId: known.nextId }))
    this.#asked.clear()
    void this.#readTurns()
  }

  /** Scrolls to a message, for which earlier ones are loaded. Throws what the daemon refused. */
  async reveal(messageId: string): Promise<void> {
    while (entryOf(this.transcript.value, messageId) === undefined && this.more.value) {
      if (this.busy) break
      const count = this.#earlier.length
      await this.loadEarlier(MAX_PAGE_MESSAGES)
      if (this.#earlier.length === count) break
    }
    const entry = entryOf(this.transcript.value, messageId)
    if (!entry)
      throw new Error(
        this.busy
          ? 'The message is further up. It can be shown when the answer is complete.'
          : 'The message is not in this conversation any more.',
      )
    this.revealed.set({ entryId: entry.id })
  }

  /** Messages sent during an answer wait here and can be withdrawn. */
  send(text: string, files: readonly AttachedFile[] = []): void {
    if (text.trim() === '') return
    if (this.#switching || this.busy || this.waitingHere.length > 0) {
      this.queue.add(text, files, this.#switching ? undefined : this.place.value.shown)
      this.#sendQueued()
      return
    }
    this.#send(text, files)
  }
  /** A message that was not sent yet is a draft again. */
  takeBack(id: number): void {
    const queued = this.queue.take(id)
    if (queued) this.drafts.prepend(queued.text, queued.files)
  }
  /** The last message is a draft again, and stays in the conversation: the daemon takes nothing back that is answered. */
  editLast(): void {
    const question = lastQuestion(this.transcript.value)
    if (question) this.drafts.prepend(question.text, question.files)
  }
  /** Sends the last message once more. */
  askAgain(): void {
    const question = lastQuestion(this.transcript.value)
    if (question) this.send(question.text, question.files)
  }
  /** What waits for the conversation in view. */
  get waitingHere(): readonly Queued[] {
    const { shown } = this.place.value
    return this.queue.value.filter(({ session }) => session === undefined || session === shown)
  }
  /** After a failed answer, and after a reload, nothing is sent automatically. */
  sendNext(): void {
    const [first] = this.waitingHere
    if (!first || this.busy || !this.here) return
    // Out of what is kept before it is sent: should the page end in between, it is not sent a second time.
    this.queue.take(first.id)
    this.#send(first.text, first.files)
  }
  #sendQueued(): void {
    if (this.#switching || this.busy || this.waitingHere[0]?.held !== false) return
    const last = this.transcript.value.entries.at(-1)
    if (last?.kind === 'answer' && last.state !== 'done' && last.state !== 'stopped') return
    // Not during the update that ended the answer: other watchers have yet to be notified of it.
    queueMicrotask(() => {
      if (!this.#switching && !this.busy && this.waitingHere[0]?.held === false) this.sendNext()
    })
  }
  #send(text: string, files: readonly AttachedFile[]): void {
    this.#era++
    this.#unread ||= this.history.value !== 'loaded'
    this.history.set('loaded')
    this.transcript.update((transcript) => ask(transcript, text, files))
    const sessionId = this.place.value.shown
    // Named, because another tab may have left this conversation a moment ago.
    const named = sessionId === undefined ? {} : { session_id: sessionId }
    const attachments = files.map(({ fileId }) => ({ file_id: fileId }))
    if (!this.connection.send({ type: 'message', content: text, ...named, attachments }))
      void this.#sendOverHttp({ message: text, session_id: sessionId, attachments })
  }

  retry(): void {
    const question = lastQuestion(this.transcript.value)
    if (!question || this.busy) return
    this.transcript.update(withoutLastExchange)
    this.#send(question.text, question.files)
  }
  /** Has a message answered again whose turn failed. Throws what the daemon refused. */
  async retryTurn(turnId: string): Promise<void> {
    try {
      await this.#api.retryTurn(turnId)
    } catch (error) {
      // Somebody else retried or dropped it: show the present state.
      if (!(error instanceof ApiError && error.status === 409)) throw error
    }
    // The stream of the session may already show the new turn, and nothing is read while one is open.
    this.transcript.update((transcript) => withoutTurn(transcript, turnId))
    await this.#readAgain()
  }
  /** Drops a failed message from the conversation. Throws the daemon's refusal. */
  async dropTurn(turnId: string): Promise<void> {
    await this.#api.dropTurn(turnId)
    await this.#readAgain()
  }
  async #readAgain(): Promise<void> {
    this.#earlier = []
    this.#newest = undefined
    await this.load()
    this.#follower.restart()
  }

  /** Throws what the daemon refused. */
  async open(sessionId: string): Promise<void> {
    await this.#switch(async () => {
      if (sessionId !== this.place.value.active) await this.#api.activate(this.agentId, sessionId)
      this.place.update(({ shown }) => ({ shown, active: sessionId }))
      if (sessionId !== this.place.value.shown) this.#forgetShown(sessionId)
      await this.load()
    })
    await this.listSessions()
  }
  /** What was written for a conversation that could not be opened is left for the user to send. */
  async #switch(change: () => Promise<void>): Promise<void> {
    this.#switching = true
    try {
      await change()
    } catch (error) {
      this.queue.hold()
      throw error
    } finally {
      this.#switching = false
    }
    this.#sendQueued()
  }
  /** Makes the conversation in view the one the agent is in. Throws what the daemon refused. */
  async stay(): Promise<void> {
    const { shown } = this.place.value
    if (shown === undefined) return
    await this.#api.activate(this.agentId, shown)
    this.place.set({ shown, active: shown })
    await this.listSessions()
  }
  async listSessions(): Promise<void> {
    this.#listedAtMs = Date.now()
    try {
      const sessions = await this.#api.sessions(this.agentId)
      if (JSON.stringify(sessions) !== JSON.stringify(this.sessions.value)) this.sessions.set(sessions)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error // The list stays as it was; what is wrong shows elsewhere.
    }
  }
  /** Nothing tells of a conversation that a channel or a schedule began. */
  #listSessionsNowAndThen(): void {
    if (this.#shown && !document.hidden && Date.now() - this.#listedAtMs > LISTING_MS) void this.listSessions()
  }
  async rename(sessionId: string, label: string | null): Promise<void> {
    await this.#api.label(sessionId, label)
    await this.listSessions()
  }
  /** The conversation in view is left; its turn goes on in the daemon. */
  #forgetShown(sessionId: string | undefined): void {
    this.#era++
    this.#follower.close()
    this.#streaming?.abort()
    this.#own.clear()
    this.#earlier = []
    this.#newest = undefined
    this.more.set(false)
    this.known.set(false)
    this.revealed.set(undefined)
    this.place.update(({ active }) => ({ shown: sessionId, active: sessionId === undefined ? undefined : active }))
    this.transcript.set({ ...emptyTranscript, nextId: this.transcript.value.nextId })
    this.history.set('loading')
    // Events still arriving on the socket belong to the previous conversation.
    if (this.#shown) {
      this.connection.close()
      this.connection.start()
    }
  }
  #enter(view: SessionView): void {
    const { shown, active } = this.place.value
    const next = { shown: view.session_id, active: view.active ? view.session_id : active }
    if (next.shown !== shown || next.active !== active) this.place.set(next)
    this.queue.enter(view.session_id)
    if (this.#shown) this.#follower.follow(view.session_id)
  }

  async #followed(event: Followed): Promise<void> {
    switch (event.type) {
      case 'alive':
        return
      case 'active':
        this.place.update(({ shown }) => ({ shown, active: event.sessionId }))
        return this.listSessions()
      case 'cleared':
        this.#earlier = []
        this.#newest = undefined
        return this.load()
      case 'settled':
        this.transcript.update((transcript) => withoutTurn(transcript, event.turnId))
        return
      case 'message':
        return this.#joined(event)
      case 'frame':
        if (!this.#own.has(event.turnId)) this.#take(event.frame, event.turnId)
        return
      case 'snapshot':
        return this.#reconcile(event)
    }
  }
  /** Brings what is shown up to the state of the daemon at the beginning of a stream. */
  async #reconcile({ activeId, turns, frames }: Extract<Followed, { type: 'snapshot' }>): Promise<void> {
    this.place.update(({ shown }) => ({ shown, active: activeId }))
    const hasUnnamed = unnamed(this.transcript.value) !== undefined
    const wasMissed = this.#detachEnded(turns)
    if (!hasUnnamed) {
      for (const turn of turns) if (!this.#own.has(turn.turn_id)) this.#joined(turn)
      for (const { turnId, frame } of frames) if (!this.#own.has(turnId)) this.#take(frame, turnId)
    }
    this.known.set(true)
    // The record has an answer that ended between two streams.
    if (wasMissed && !this.busy) await this.load()
  }
  /** Whether the last answer ended unseen; one that is shown as open is detached. */
  #detachEnded(running: readonly { readonly turn_id: string }[]): boolean {
    const last = this.transcript.value.entries.findLast((entry) => entry.kind === 'answer')
    if (!last || running.some(({ turn_id: id }) => id === last.turnId)) return false
    const isOpen = last === openAnswer(this.transcript.value)
    const hasEnded = isOpen && last.turnId !== undefined && !this.#own.has(last.turnId)
    if (hasEnded) this.transcript.update(detach)
    return hasEnded || last.state === 'unanswered' || last.state === 'detached'
  }
  #joined(turn: Extract<Followed, { type: 'message' }> | Parameters<typeof join>[1]): void {
    const { value } = this.transcript
    // Sent by this page a moment ago, and about to arrive on the socket as well.
    const mine = unnamed(value)
    const sent = mine && questionOf(value, mine)
    if (mine && sent && splitAttached(sent.text).text.trim() === splitAttached(turn.content).text.trim()) {
      this.#own.add(turn.turn_id)
      this.transcript.update((known) => name(known, mine, turn.turn_id))
      return
    }
    if (this.#own.has(turn.turn_id)) return
    const known = answerOf(value, turn.turn_id)
    if (
      known &&
      known.state !== 'unanswered' &&
      known.state !== 'detached' &&
      known.state !== 'thinking' &&
      known.state !== 'streaming'
    )
      return
    this.transcript.update((transcript) => join(transcript, turn))
  }
  #take(frame: ServerFrame, turnId: string): void {
    const before = answerOf(this.transcript.value, turnId)
    this.transcript.update((transcript) => receive(transcript, frame, turnId, new Date().toISOString()))
    if (frame.type === 'response' || frame.type === 'error') this.#ended(before === undefined || frame.type === 'error')
  }
  #ended(unseen: boolean): void {
    if (unseen && !this.busy) void this.load()
    if (!this.sessions.value.some(({ id, title }) => id === this.place.value.shown && title !== ''))
      void this.listSessions()
  }

  async stop(): Promise<void> {
    try {
      await this.#api.stop(this.agentId, this.place.value.shown)
    } catch (error) {
      this.transcript.update((transcript) => fail(transcript, `Could not stop: ${explain(error)}`))
    }
  }

  /** An answer that runs in the conversation before goes on. Throws what the daemon refused. */
  async startNew(): Promise<void> {
    await this.#switch(async () => {
      const sessionId = await this.#api.createSession(this.agentId)
      this.#forgetShown(sessionId)
      this.place.set({ shown: sessionId, active: sessionId })
      this.known.set(true)
      this.history.set('loaded')
      await this.load()
    })
    await this.listSessions()
  }

  /**
   * A copy of the conversation up to an answer comes into view; the conversation itself stays in the list. Throws what
   * the daemon refused.
   */
  async branch(turnId: string): Promise<void> {
    await this.#switch(async () => {
      const { shown } = this.place.value
      if (shown === undefined) return
      const sessionId = await this.#api.branch(shown, await this.#lastMessageOf(turnId))
      this.#forgetShown(sessionId)
      this.place.set({ shown: sessionId, active: sessionId })
      await this.load()
    })
    await this.listSessions()
  }
  /** An answer that came over the socket has no message here yet. */
  async #lastMessageOf(turnId: string): Promise<string> {
    const known = answerOf(this.transcript.value, turnId)?.messageIds?.at(-1)
    if (known !== undefined) return known
    const { messages } = await this.#api.session(this.agentId, this.place.value.shown)
    const recorded = messages.findLast((message) => message.turn_id === turnId)?.id
    if (recorded === undefined) throw new Error('This answer is not recorded.')
    return recorded
  }

  /** A command went to another conversation. */
  async #moved(): Promise<void> {
    try {
      const view = await this.#api.session(this.agentId, undefined)
      if (view.session_id === this.place.value.shown) return
      this.place.set({ shown: view.session_id, active: view.session_id })
      this.#earlier = []
      this.#newest = view
      if (this.#shown) this.#follower.follow(view.session_id)
      if (view.messages.length > 0) this.transcript.update((known) => fromRecord(this.#recorded(view), known))
      await this.listSessions()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error // The banner of the connection says so.
    }
  }

  /** The messages to show: those of a reloaded session, after the earlier ones that were loaded. */
  #recorded(view: SessionView): readonly SessionMessage[] {
    const first = view.messages[0]?.id
    const sameSession = this.#newest?.session_id === view.session_id
    const known = sameSession ? [...this.#earlier, ...(this.#newest?.messages ?? [])] : []
    const overlap = known.findIndex(({ id }) => id !== undefined && id === first)
    this.#earlier = overlap > 0 ? known.slice(0, overlap) : []
    this.#newest = view
    if (this.#earlier.length === 0) this.more.set(view.has_earlier)
    return [...this.#earlier, ...view.messages]
  }

  #receive(frame: ServerFrame): void {
    if (frame.type === 'agents_updated') {
      this.#onAgents(frame.agents)
      return this.#listSessionsNowAndThen()
    }
    if (frame.type === 'approval') return this.#onApproval()
    const question = lastQuestion(this.transcript.value)?.text ?? ''
    const wasBusy = this.busy
    if (frame.type === 'thinking' && frame.turn_id !== undefined) {
      this.#own.add(frame.turn_id)
      const named = unnamed(this.transcript.value)
      if (named) this.transcript.update((transcript) => name(transcript, named, frame.turn_id ?? ''))
      // The first message of a conversation is what makes it one of the list.
      if (!this.sessions.value.some(({ id, title }) => id === this.place.value.shown && title !== ''))
        void this.listSessions()
    }
    const mine = this.#mine()
    this.transcript.update((transcript) => receive(transcript, frame, mine, new Date().toISOString()))
    if (!wasBusy || this.busy) return
    this.#own.clear()
    this.#ended(false)
    // The daemon keeps no record of a command's reply, and `/new` leaves an empty session behind.
    if (frame.type === 'response' && /^\/(new|reset|sessions\s+\S)/.test(question)) {
      this.transcript.update((transcript) => ({ ...transcript, entries: transcript.entries.slice(-1) }))
      void this.#moved()
    }
    if (!this.#shown) return this.connection.close()
    // Whether the failed message can be retried.
    if (frame.type === 'error') void this.load()
    // Where a call's result did not travel with the answer, the session has it.
    if (frame.type === 'response' && (this.#unread || lacksResults(this.transcript.value))) void this.load()
  }

  /** The turn whose answer comes over the socket; `undefined` while the daemon has not named it. */
  #mine(): string | undefined {
    for (const { kind, ...entry } of this.transcript.value.entries)
      if (kind === 'answer' && 'turnId' in entry && entry.turnId !== undefined && this.#own.has(entry.turnId)) {
        const answer = answerOf(this.transcript.value, entry.turnId)
        if (answer && (answer.state === 'thinking' || answer.state === 'streaming')) return entry.turnId
      }
    return undefined
  }

  async #sendOverHttp(message: NewMessage): Promise<void> {
    // Sent as a message it would go to the model.
    if (/^\/[a-z][a-z0-9-]*(\s|$)/i.test(message.message)) return this.#runCommand(message.message)
    const streaming = new AbortController()
    this.#streaming = streaming
    try {
      for await (const frame of this.#api.answer(this.agentId, message, streaming.signal)) this.#receive(frame)
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

  async #runCommand(text: string): Promise<void> {
    try {
      const { content, turn_id: turnId } = await this.#api.command(this.agentId, text, this.place.value.shown)
      this.#receive({ type: 'response', content, input_tokens: 0, output_tokens: 0 })
      // A retry is a turn of the session.
      if (turnId !== undefined) await this.#readAgain()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.transcript.update((transcript) => fail(transcript, explain(error)))
    }
  }

  /** The model, the cost and the failure of the newest recorded answers. */
  async #readTurns(): Promise<void> {
    for (const turnId of unaccounted(this.transcript.value, this.#newest?.created_at ?? undefined)
      .filter((id) => !this.#asked.has(id))
      .slice(0, maxTurnLookups)) {
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

  /**
   * A turn runs to its end in the daemon without listeners: an answer this page lost is read from the session once it
   * is there.
   */
  async #waitForRecord(): Promise<void> {
    const era = this.#era
    for (const delayMs of recordedDelaysMs) {
      const last = this.transcript.value.entries.at(-1)
      if (era !== this.#era || last?.kind !== 'answer' || (last.state !== 'detached' && last.state !== 'unanswered'))
        return
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      if (era !== this.#era || !this.#shown) return
      try {
        const view = await this.#api.session(this.agentId, this.place.value.shown)
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
