import * as v from 'valibot'
import { escapeControls } from 'svc/cli'
import type { DaemonClient, ServerEvent, View } from 'svc/cli'
import { failureMessage } from './answer-display.ts'
import type { AnswerDisplay } from './answer-display.ts'
import { Done } from './events.ts'
import { usageLine } from './usage-line.ts'

const Turn = v.looseObject({ turn_id: v.string(), content: v.string(), entry_point: v.string() })
const Snapshot = v.looseObject({
  turns: v.array(Turn),
  events: v.array(v.looseObject({ event: v.string(), data: v.unknown() })),
})
const OfTurn = v.looseObject({ turn_id: v.string() })
const Active = v.looseObject({ session_id: v.string() })

/** The stream tells of each at once, unless it is away. */
const MAX_SENT = 20
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000

/** Who wrote a message, when that is not somebody at the page. */
const writers: Readonly<Record<string, string>> = {
  channel: 'a channel',
  schedule: 'a schedule',
  trigger: 'a trigger',
  workflow: 'a workflow',
  hook: 'a webhook',
  task: 'a task',
  agent: 'another agent',
  a2a: 'another agent',
  peer: 'another agent',
  openai: 'the OpenAI API',
}

export interface SessionWatchDeps {
  readonly client: DaemonClient
  readonly view: View
  readonly display: AnswerDisplay
  /** The session in which one talks now. */
  readonly sessionId: () => Promise<string>
  /** Another session became the active one of the agent. Whether it is the one in which one talks now. */
  readonly follows: (activeId: string) => boolean
}

/** Shows what others say in the conversation, at the page or elsewhere, with the answers as they come. */
export class SessionWatch {
  readonly #deps: SessionWatchDeps
  readonly #end = new AbortController()
  /** Ends the stream of the session that was left. */
  #left = new AbortController()
  /** Messages that were sent here and that the stream has not told of yet. */
  readonly #sent: string[] = []
  readonly #own = new Set<string>()
  /** Turns of others whose answers are to come, by id, and since when. */
  readonly #others = new Map<string, number>()

  constructor(deps: SessionWatchDeps) {
    this.#deps = deps
  }

  /** The message is about to be sent here. */
  send(message: string): void {
    this.#sent.push(message)
    if (this.#sent.length > MAX_SENT) this.#sent.shift()
  }
  /** One talks in another conversation from now on, maybe. */
  move(): void {
    this.#left.abort()
  }
  stop(): void {
    this.#end.abort()
    this.#left.abort()
  }

  /** Settles after `stop`. A daemon that is gone is told by what is sent to it, so here it is only tried again. */
  async run(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !this.#end.signal.aborted;) {
      this.#left = new AbortController()
      const wasOpen = await this.#follow(this.#left.signal)
      if (this.#left.signal.aborted) continue
      pauseMs = wasOpen ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pauseMs * 2)
      await pause(pauseMs, this.#left.signal)
    }
  }

  /** Whether it was ever open. */
  async #follow(signal: AbortSignal): Promise<boolean> {
    let isOpen = false
    try {
      const path = `/api/sessions/${await this.#deps.sessionId()}/stream`
      for await (const event of this.#deps.client.stream('GET', path, { signal })) {
        isOpen = true
        this.#hear(event)
      }
    } catch {
      return isOpen
    }
    return isOpen
  }

  #hear(event: ServerEvent): void {
    switch (event.event) {
      case 'snapshot':
        return this.#begin(v.parse(Snapshot, event.data))
      case 'message':
        return this.#hearMessage(v.parse(Turn, event.data))
      case 'active':
        if (this.#deps.follows(v.parse(Active, event.data).session_id)) this.move()
        return
      default:
        if (v.is(OfTurn, event.data)) this.#hearAnswer(event.data.turn_id, event)
    }
  }
  /** What runs already is shown from its beginning. */
  #begin({ turns, events }: v.InferOutput<typeof Snapshot>): void {
    if (turns.some(({ turn_id: id }) => this.#others.has(id))) this.#deps.view.endAnswer()
    for (const turn of turns) this.#hearMessage(turn)
    for (const event of events) this.#hear(event)
  }

  #hearMessage({ turn_id: id, content, entry_point: from }: v.InferOutput<typeof Turn>): void {
    const at = this.#sent.indexOf(content)
    if (at >= 0 && (from === 'sse' || from === 'rest')) {
      this.#sent.splice(at, 1)
      this.#own.add(id)
    }
    if (this.#own.has(id)) return
    const { view, display } = this.#deps
    if (!this.#others.has(id)) {
      const writer = writers[from]
      view.note(`> ${escapeControls(content, true)}${writer === undefined ? '' : display.dim(` (by ${writer})`)}`)
    }
    this.#others.set(id, performance.now())
  }

  #hearAnswer(id: string, event: ServerEvent): void {
    const failure = failureMessage(event)
    if (failure !== undefined || event.event === 'done') this.#own.delete(id)
    const since = this.#others.get(id)
    if (since === undefined) return
    const { view, display } = this.#deps
    if (failure === undefined && event.event !== 'done') return display.show(event)
    this.#others.delete(id)
    view.endAnswer()
    view.status(undefined)
    const line = failure ?? usageLine(v.parse(Done, event.data), (performance.now() - since) / 1000)
    if (line !== undefined) view.note(display.dim(`(${escapeControls(line)})`))
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
