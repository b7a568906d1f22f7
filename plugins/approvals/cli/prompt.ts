import { escapeControls, paint } from 'svc/cli'
import type { DaemonClient, View } from 'svc/cli'
import { decide, lettersOf, linesOf, renderChoices, renderDetails, renderQuestion, timeLeft } from './approval.ts'
import type { Approval, FormAnswers } from './approval.ts'
import { describeField } from './form.ts'
import { ApprovalFeed } from './feed.ts'

interface ApprovalPromptDeps {
  readonly client: DaemonClient
  readonly view: View
  /** Of one agent, or of all. */
  readonly agentId: () => string | undefined
  /** An answer was refused. */
  readonly onRefused: (error: unknown) => void
  /** The daemon does not answer any more. */
  readonly onLost: (error: unknown) => void
  /** A question was answered; `tool` runs now. */
  readonly onAnswered: (tool: string | undefined) => void
  /** Called with each approval instead of asking, where no input is possible. */
  readonly notify?: ((approval: Approval) => void) | undefined
}

interface Decision {
  readonly scope?: 'once' | 'session'
  /** What was filled in. */
  readonly content?: FormAnswers
  /** Of a rejection. */
  readonly reason?: string | undefined
}
interface Filling {
  readonly approval: Approval
  readonly answers: FormAnswers
}
/** Asks about the pending approvals one after the other; one letter answers. */
export class ApprovalPrompt {
  readonly #deps: ApprovalPromptDeps
  readonly #feed: ApprovalFeed
  #current: Approval | undefined
  /** The form that is filled in, line by line. */
  #filling: Filling | undefined
  /** When the question was shown, by the clock of this process. */
  #shownAt = 0
  constructor(deps: ApprovalPromptDeps) {
    this.#deps = deps
    this.#feed = new ApprovalFeed({
      client: deps.client,
      agentId: deps.agentId,
      onAdded: (approval) => (deps.notify ? deps.notify(approval) : this.#askNext()),
      onSettled: (approval) => this.#settled(approval),
      onFailure: deps.onLost,
    })
  }

  /** The one the next letter is for. */
  get current(): Approval | undefined {
    return this.#current
  }
  /** Those that wait, the oldest first. */
  get waiting(): readonly Approval[] {
    return this.#feed.waiting
  }
  start(): void {
    this.#feed.start()
  }
  /** The pending approval is settled: somebody else answered it, or it expired. */
  stop(): void {
    const open = this.#current
    this.drop()
    if (open) this.#settled(open)
  }
  /** The user gave up what waited. */
  drop(): void {
    this.#feed.stop()
    this.#current = undefined
    this.#filling = undefined
  }

  /**
   * Whether the line answers the question. A letter counts only when its line was started after the question was shown:
   * text typed for something else must not approve anything.
   */
  takes(line: string, begunAt: number): boolean {
    const { view } = this.#deps
    if (this.#filling && begunAt > this.#shownAt) return this.#fill(this.#filling, line.trim())
    const approval = this.#current
    const reason = /^no?[\s,:]+(\S.*)$/is.exec(line.trim())?.[1]
    if (approval && reason !== undefined && begunAt > this.#shownAt) {
      this.decide('reject', approval.id, { reason })
      return true
    }
    // Other programs call it "always".
    const letter = /^(?:y|yes|n|no|s|a|d)$/.exec(line.trim().toLowerCase())?.[0].charAt(0).replace('a', 's')
    if (!approval || letter === undefined) return false
    const letters = lettersOf(approval)
    if (begunAt <= this.#shownAt)
      view.note(`That was typed before the question was shown. Answer it again: ${letters}.`)
    else if (letter === 'd') this.#details(approval.id)
    else if (letter === 's' && !approval.scopes.includes('session'))
      view.note(`This can be allowed once only: ${letters}.`)
    else if (letter === 'y' && approval.form) this.#askField({ approval, answers: {} })
    else this.decide(letter === 'n' ? 'reject' : 'approve', approval.id, { scope: letter === 's' ? 'session' : 'once' })
    return true
  }
  #askField(filling: Filling): void {
    const { view } = this.#deps
    const { approval, answers } = filling
    const field = approval.form?.fields[Object.keys(answers).length]
    this.#filling = field && filling
    this.#shownAt = performance.now()
    if (field) view.note(`  ${describeField(field)}\n  - leaves it out`)
    else
      this.decide('approve', approval.id, {
        content: Object.fromEntries(Object.entries(answers).filter(([, text]) => text !== '')),
      })
  }
  #fill({ approval, answers }: Filling, text: string): true {
    const field = approval.form?.fields[Object.keys(answers).length]
    this.#askField({ approval, answers: { ...answers, [field?.name ?? '']: text === '-' ? '' : text } })
    return true
  }
  decide(verb: 'approve' | 'reject', id: string, { scope = 'once', content, reason }: Decision = {}): void {
    const { client, view, onAnswered, onRefused } = this.#deps
    // The next letter is not for this one, whatever becomes of it.
    this.#filling = undefined
    const open = this.#current?.id.startsWith(id) ? this.#current : undefined
    if (open) this.#current = undefined
    decide(client, verb, id, { scope, fill: () => content, reason }).then(
      ({ approval, answer }) => {
        this.#feed.settle(approval.id)
        const isApproved = answer.status === 'approved'
        const status = isApproved && scope === 'session' ? 'approved for this conversation' : answer.status
        const why = reason === undefined ? '' : ` (the agent reads: ${escapeControls(reason)})`
        view.note(`${status}: ${linesOf(approval).join(' ')}${why}`)
        onAnswered(isApproved ? approval.tool_name : undefined)
        this.#askNext()
      },
      (error: unknown) => {
        onRefused(error)
        if (open) this.#feed.forget(open.id)
        this.#askNext()
      },
    )
  }

  #askNext(): void {
    const { view, notify } = this.#deps
    const [first] = this.#feed.waiting
    if (!first || this.#current || notify) return
    view.note(`\n${renderQuestion(first, (text) => paint(view.colored, 1, text))}${renderChoices(first)}`)
    this.#current = first
    this.#shownAt = performance.now()
    view.status(() => `your answer: ${lettersOf(first)} (d shows details), ${timeLeft(first)} left`)
  }
  #settled({ id, expires_at: until }: Approval): void {
    const { view, onAnswered } = this.#deps
    const isShown = this.#current === undefined || this.#current.id === id
    const isLate = Date.parse(until) <= Date.now()
    view.note(isLate ? 'Not answered in time, which counts as a rejection.' : `Answered elsewhere (${id.slice(0, 8)}).`)
    if (!isShown) return
    this.#current = undefined
    this.#filling = undefined
    onAnswered(undefined)
    this.#askNext()
  }
  #details(id: string): void {
    const { client, view, onRefused } = this.#deps
    renderDetails(client, id).then((text) => view.note(text), onRefused)
  }
}
