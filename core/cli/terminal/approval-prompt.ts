import type { DaemonClient } from '../../net/daemon-client.ts'
import { decide, lettersOf, linesOf, renderChoices, renderDetails, renderQuestion, timeLeft } from '../approvals.ts'
import type { Approval } from '../approvals.ts'
import { ApprovalFeed } from './approval-feed.ts'
import { paint } from './view.ts'
import type { View } from './view.ts'

interface PromptParts {
  readonly client: DaemonClient
  readonly view: View
  /** Of one agent, or of all. */
  readonly agentId: () => string | undefined
  /** Says what cannot be answered. */
  readonly onRefused: (error: unknown) => void
  /** The daemon cannot be asked any more. */
  readonly onLost: (error: unknown) => void
  /** What is waited for once nothing is asked; with the tool that runs now. */
  readonly onAnswered: (tool: string | undefined) => void
  /** Tells of each one instead, where nobody types letters. */
  readonly tell?: ((approval: Approval) => void) | undefined
}

/** Asks for what agents want to do, one after the other, and takes one letter for an answer. */
export class ApprovalPrompt {
  readonly #parts: PromptParts
  readonly #feed: ApprovalFeed
  #asked: Approval | undefined
  /** When the question was shown, by the clock of this process. */
  #askedAt = 0
  constructor(parts: PromptParts) {
    this.#parts = parts
    this.#feed = new ApprovalFeed({
      client: parts.client,
      agentId: parts.agentId,
      onAsked: (approval) => (parts.tell ? parts.tell(approval) : this.#askNext()),
      onSettled: (approval) => this.#settled(approval),
      onFailure: parts.onLost,
    })
  }

  /** The one the next letter is for. */
  get asked(): Approval | undefined {
    return this.#asked
  }
  /** Those that wait, the oldest first. */
  get waiting(): readonly Approval[] {
    return this.#feed.waiting
  }
  start(): void {
    this.#feed.start()
  }
  /** What waited is over: somebody else answered, or nobody did in time. */
  stop(): void {
    const open = this.#asked
    this.drop()
    if (open) this.#settled(open)
  }
  /** The user gave up what waited. */
  drop(): void {
    this.#feed.stop()
    this.#asked = undefined
  }

  /**
   * Whether the line is an answer. A letter counts only where its line was begun with the question on the screen: what was typed for
   * something else must not let anything be done.
   */
  takes(line: string, begunAt: number): boolean {
    const { view } = this.#parts
    const letter = /^(?:y|yes|n|no|s|d)$/.exec(line.trim().toLowerCase())?.[0].charAt(0)
    const approval = this.#asked
    if (!approval || letter === undefined) return false
    const letters = lettersOf(approval)
    if (begunAt <= this.#askedAt)
      view.note(`That was typed before the question was shown. Answer it again: ${letters}.`)
    else if (letter === 'd') this.#details(approval.id)
    else if (letter === 's' && !approval.scopes.includes('session'))
      view.note(`This can be allowed once only: ${letters}.`)
    else this.decide(letter === 'n' ? 'reject' : 'approve', approval.id, letter === 's' ? 'session' : 'once')
    return true
  }
  decide(verb: 'approve' | 'reject', id: string, scope: 'once' | 'session'): void {
    const { client, view, onAnswered, onRefused } = this.#parts
    // The next letter is not for this one, whatever becomes of it.
    const open = this.#asked?.id.startsWith(id) ? this.#asked : undefined
    if (open) this.#asked = undefined
    decide(client, verb, id, scope).then(
      ({ approval, answer }) => {
        this.#feed.settle(approval.id)
        const approved = answer.status === 'approved'
        view.note(
          `${approved && scope === 'session' ? 'approved for this conversation' : answer.status}: ${linesOf(approval).join(' ')}`,
        )
        onAnswered(approved ? approval.tool_name : undefined)
        this.#askNext()
      },
      (error: unknown) => {
        onRefused(error)
        if (open) this.#feed.askAgain(open.id)
        this.#askNext()
      },
    )
  }

  #askNext(): void {
    const { view, tell } = this.#parts
    const [first] = this.#feed.waiting
    if (!first || this.#asked || tell) return
    view.note(`\n${renderQuestion(first, (text) => paint(view.colored, 1, text))}${renderChoices(first)}`)
    this.#asked = first
    this.#askedAt = performance.now()
    view.status(() => `your answer: ${lettersOf(first)} (d shows details), ${timeLeft(first)} left`)
  }
  #settled({ id, expires_at: until }: Approval): void {
    const { view, onAnswered } = this.#parts
    const shown = this.#asked === undefined || this.#asked.id === id
    const late = Date.parse(until) <= Date.now()
    view.note(late ? 'Nobody answered in time, which counts as no.' : `Answered elsewhere (${id.slice(0, 8)}).`)
    if (!shown) return
    this.#asked = undefined
    onAnswered(undefined)
    this.#askNext()
  }
  #details(id: string): void {
    const { client, view, onRefused } = this.#parts
    renderDetails(client, id).then((text) => view.note(text), onRefused)
  }
}
