import { setTimeout as delay } from 'node:timers/promises'
import * as v from 'valibot'
import { escapeControls } from '../log/text.ts'
import { commandName } from '../process/command-name.ts'
import type { ServerEvent } from '../net/daemon-client.ts'
import { decide, linesOf, renderChoices, renderDetails, renderQuestion, timeLeft } from './approvals.ts'
import type { Approval } from './approvals.ts'
import { AgentItem, ask, explain, requireAgent } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { renderTable } from './output.ts'
import { renderFailure, toFailure } from './report.ts'
import type { Session } from './sessions.ts'
import { ApprovalFeed } from './terminal/approval-feed.ts'
import { Chunk, describePhase, Done, Phase, Problem, ToolResult, ToolUse } from './terminal/events.ts'
import { paint } from './terminal/view.ts'
import type { View } from './terminal/view.ts'
import { Whereabouts } from './whereabouts.ts'

const Answered = v.looseObject({ content: v.string(), session_id: v.string(), thinking: v.nullish(v.boolean()) })

const Messages = v.looseObject({
  messages: v.array(v.looseObject({ turn_id: v.optional(v.string()), failed: v.optional(v.boolean(), false) })),
})
const Turn = v.looseObject({
  state: v.string(),
  text: v.string(),
  error: v.nullish(v.string()),
  phase: v.nullish(Phase),
})
const open: ReadonlySet<string> = new Set(['queued', 'running', 'waiting'])
const LOOK_MS = 500

const own: readonly (readonly [command: string, meaning: string])[] = [
  ['/agents', 'list the agents'],
  ['/agent <name>', 'talk to another one'],
  ['/details [id]', 'all about what waits for approval'],
  ['/exit', 'leave'],
]
const keys = `Ctrl-C clears what is typed; with nothing typed it stops the answer, and without an answer it leaves. Ctrl-D leaves.
A pasted text is one message, however many lines it has. What is typed during an answer is sent after it.`

interface ConversationParts {
  readonly connection: Connection
  readonly agent: AgentItem
  /** Talks here whatever the active session is; in the active one when absent. */
  readonly session: Session | undefined
  readonly view: View
  /** Every event as one JSON line on standard output. */
  readonly json: boolean
  /** One letter answers what an agent asks for. */
  readonly letters: boolean
}

/** A slash and a word; a path is not one, nor is a text of several lines. */
const isCommand = (text: string): boolean => /^\/[a-zA-Z]+(?: |$)/.test(text) && !text.includes('\n')

/** A conversation with one agent on a terminal: messages, commands, and what is shown of an answer. */
export class Conversation {
  readonly #parts: ConversationParts
  readonly #view: View
  readonly #approvals: ApprovalFeed
  readonly #whereabouts: Whereabouts
  #agent: AgentItem
  #sessionId: string | undefined
  /** What the manifest says while it is undefined. */
  #thinking: boolean | undefined
  #answer: AbortController | undefined
  /** When the question that is answered next was shown, by the clock of this process. */
  #askedAt = 0
  /** Whether the last answer was ended by the user. */
  cancelled = false

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#view = parts.view
    this.#agent = parts.agent
    this.#sessionId = parts.session?.id
    this.#approvals = new ApprovalFeed({
      client: parts.connection.client,
      agentId: () => this.#agent.id,
      onAsked: (approval) => this.#asked(approval),
      onSettled: ({ id, expires_at: until }) => {
        const late = Date.parse(until) <= Date.now()
        this.#view.note(
          late ? 'Nobody answered in time, which counts as no.' : `Answered elsewhere (${id.slice(0, 8)}).`,
        )
        this.#askNext()
      },
      // The answer that is being read tells of a daemon that is gone; one without approvals has nothing to tell.
      onFailure: () => undefined,
    })
    this.#whereabouts = new Whereabouts(parts.connection.client, (text) => {
      if (this.#approvals.waiting.length === 0) this.#view.status(text)
      if (!parts.letters) this.#view.note(this.#dim(`(${text})`))
    })
  }

  greet(): void {
    const { name, model_provider: provider, model_name: model } = this.#agent
    this.#view.note(
      `Talking to "${escapeControls(name)}" (${escapeControls(`${provider}/${model}`)}). /help lists the commands, /sessions earlier conversations; Ctrl-C stops an answer, then leaves.`,
    )
  }

  /** One line of input: a command or a message. */
  async take(line: string): Promise<'exit' | undefined> {
    const text = line.trim()
    if (text === '') return undefined
    if (!isCommand(text)) {
      await this.send(text)
      return undefined
    }
    return await ask(this.#parts.connection, () => this.#command(text))
  }

  /** Sends a message and shows the answer as it comes. Throws a `Failure`. */
  async send(message: string): Promise<void> {
    const body = {
      message,
      ...(this.#sessionId === undefined ? {} : { session_id: this.#sessionId }),
      ...(this.#thinking === undefined ? {} : { thinking: this.#thinking }),
    }
    await this.#follow(`/api/agents/${this.#agent.id}/message/stream`, body)
  }

  async #follow(path: string, body: object): Promise<void> {
    const { connection, json } = this.#parts
    this.#answer = new AbortController()
    this.cancelled = false
    let finished = false
    if (!json) this.#whereabouts.heard(this.#agent.id)
    if (!json) this.#view.status('waiting for the model')
    try {
      for await (const event of connection.client.stream(path, { body, signal: this.#answer.signal })) {
        if (json) process.stdout.write(`${JSON.stringify(event)}\n`)
        if (event.event === 'done') finished = true
        if (!json) this.#whereabouts.heard(this.#agent.id)
        // Between the start of a call and its result somebody may have to say yes.
        if (event.event === 'tool_use') this.#approvals.start()
        else this.#approvals.stop()
        this.#show(event)
      }
    } catch (error) {
      if (!this.cancelled) throw explain(error, connection)
    } finally {
      this.#answer = undefined
      this.#approvals.stop()
      this.#whereabouts.end()
      if (!json) this.#view.endAnswer()
    }
    if (this.cancelled) this.#view.note('(stopped)')
    else if (!finished)
      throw new Failure(
        exits.failed,
        'the answer broke off',
        'the log of the daemon says more; what was written is kept in the session',
      )
  }

  /** Sends the last message that failed once more, and shows what comes of it. */
  async #retry(): Promise<void> {
    const { client } = this.#parts.connection
    const path =
      this.#sessionId === undefined ? `/api/agents/${this.#agent.id}/session` : `/api/sessions/${this.#sessionId}`
    const { messages } = await client.call('GET', path, Messages)
    const turnId = messages.findLast(({ failed }) => failed)?.turn_id
    if (turnId === undefined) {
      this.#view.note('No message of this conversation failed.')
      return
    }
    const { turn_id: id } = await client.call(
      'POST',
      `/api/turns/${turnId}/retry`,
      v.looseObject({ turn_id: v.string() }),
    )
    this.#answer = new AbortController()
    this.cancelled = false
    this.#approvals.start()
    try {
      for (;;) {
        const turn = await client.call('GET', `/api/turns/${id}`, Turn)
        if (!open.has(turn.state)) {
          this.#view.text(turn.text)
          if (turn.state === 'failed')
            throw new Failure(exits.failed, turn.error ?? 'it failed again', '/retry or /drop')
          return
        }
        if (turn.phase && this.#approvals.waiting.length === 0)
          this.#view.status(escapeControls(describePhase(turn.phase).text))
        await delay(LOOK_MS)
      }
    } finally {
      this.#answer = undefined
      this.#approvals.stop()
      this.#view.endAnswer()
    }
  }

  /**
   * Whether the line answers what an agent asks for, which cannot wait for the end of the answer that waits for it. A single letter
   * counts only where its line was begun with the question on the screen: what was typed for something else must not let anything be done.
   */
  answersApproval(line: string, begunAt: number): boolean {
    const [, verb, id = ''] = /^\s*\/(approve|reject)(?:\s+(\S+))?\s*$/.exec(line) ?? []
    if (verb === 'approve' || verb === 'reject') {
      this.#decide(verb, id || (this.#approvals.waiting[0]?.id ?? ''), 'once')
      return true
    }
    const [first] = this.#approvals.waiting
    const letter = line.trim().toLowerCase()
    if (!this.#parts.letters || !first || !/^(?:y|yes|n|no|s|d)$/.test(letter)) return false
    if (begunAt <= this.#askedAt) {
      this.#view.note('That was typed before the question was shown. Answer it again: y or n.')
      return true
    }
    if (letter === 'd') this.#details(first.id)
    else if (letter === 's' && !first.scopes.includes('session'))
      this.#view.note('This can be allowed once only: y or n.')
    else this.#decide(letter.startsWith('n') ? 'reject' : 'approve', first.id, letter === 's' ? 'session' : 'once')
    return true
  }

  /** Ends the running answer here and in the daemon; `false` when there is none. */
  cancel(): boolean {
    if (!this.#answer || this.cancelled) return false
    const answer = this.#answer
    this.cancelled = true
    // The stream ends when the turn has; if it cannot be stopped, leaving it has to do.
    this.#parts.connection.client
      .call('POST', `/api/agents/${this.#agent.id}/stop`, v.unknown(), { timeoutMs: 3000 })
      .catch((error: unknown) => this.#report(error))
      .finally(() => answer.abort(new Error('stopped')))
    return true
  }

  /** Shows a failure after which one can go on. */
  survives(error: unknown): boolean {
    const failure = toFailure(error)
    this.#view.note(renderFailure(failure, false))
    return failure.exit !== exits.notRunning
  }

  #dim(text: string): string {
    return paint(this.#view.colored, 90, text)
  }
  #report(error: unknown): void {
    this.#view.note(renderFailure(toFailure(explain(error, this.#parts.connection)), false))
  }

  #asked(approval: Approval): void {
    if (this.#parts.letters) {
      if (this.#approvals.waiting[0]?.id === approval.id) this.#askNext()
      return
    }
    const id = approval.id.slice(0, 8)
    this.#view.note(
      `${renderQuestion(approval, (text) => text)}  /approve ${id} or /reject ${id}; elsewhere: ${commandName()} approval approve ${id}`,
    )
  }
  /** One question at a time: the oldest. */
  #askNext(): void {
    const [first] = this.#approvals.waiting
    if (!first || !this.#parts.letters) return
    this.#view.note(`\n${renderQuestion(first, (text) => paint(this.#view.colored, 1, text))}${renderChoices(first)}`)
    this.#askedAt = performance.now()
    this.#view.status(() => `your answer: y or n (d shows details), ${timeLeft(first)} left`)
  }
  #decide(verb: 'approve' | 'reject', id: string, scope: 'once' | 'session'): void {
    decide(this.#parts.connection.client, verb, id, scope).then(
      ({ approval, answer }) => {
        this.#approvals.settle(approval.id)
        const what =
          answer.status === 'approved' && scope === 'session' ? 'approved for this conversation' : answer.status
        this.#view.note(`${what}: ${linesOf(approval).join(' ')}`)
        this.#view.status(answer.status === 'approved' ? `running ${approval.tool_name}` : 'waiting for the model')
        this.#askNext()
      },
      (error: unknown) => this.#report(error),
    )
  }
  #details(id: string): void {
    renderDetails(this.#parts.connection.client, id).then(
      (text) => this.#view.note(text),
      (error: unknown) => this.#report(error),
    )
  }

  /** Shows one event. */
  #show({ event, data }: ServerEvent): void {
    const { json } = this.#parts
    switch (event) {
      case 'chunk':
        if (!json) {
          this.#view.status('answering')
          this.#view.text(v.parse(Chunk, data).content)
        }
        return
      case 'thinking':
        if (!json) {
          this.#view.status('the model is thinking')
          this.#view.reasoning(v.parse(Chunk, data).content)
        }
        return
      case 'phase': {
        const { text, loud } = describePhase(v.parse(Phase, data))
        if (json) return
        this.#view.status(escapeControls(text))
        if (loud) this.#view.note(this.#dim(`(${escapeControls(text)})`))
        return
      }
      case 'tool_use': {
        if (json) return
        const tool = escapeControls(v.parse(ToolUse, data).tool)
        if (this.#parts.letters) this.#view.status(`running ${tool}`)
        else this.#view.note(this.#dim(`[${tool} …]`))
        return
      }
      case 'tool_result': {
        const { tool, input, is_error: failed } = v.parse(ToolResult, data)
        if (json) return
        this.#view.note(
          this.#dim(
            `[${escapeControls(tool)} ${escapeControls(JSON.stringify(input ?? {})).slice(0, 200)}${failed ? ' failed' : ''}]`,
          ),
        )
        this.#view.status('waiting for the model')
        return
      }
      case 'done':
        // Somebody else may have stopped it, on the page or through the API.
        if (v.parse(Done, data).stop === 'cancelled') this.cancelled = true
        return
      case 'error': {
        const { content, message, error } = v.parse(Problem, typeof data === 'string' ? { message: data } : data)
        throw new Failure(
          exits.failed,
          content ?? message ?? (typeof error === 'string' ? error : error?.message) ?? 'the agent failed',
          this.#parts.letters
            ? '/retry sends the message again, /drop takes it away; the log of the daemon says more'
            : 'send the message again, or look at the log of the daemon',
        )
      }
      // Events of a newer daemon are no reason to fail.
      default:
        return
    }
  }

  async #command(text: string): Promise<'exit' | undefined> {
    const { client } = this.#parts.connection
    const [name = '', ...words] = text.split(/\s+/)
    const rest = words.join(' ')
    switch (name) {
      case '/exit':
      case '/quit':
        return 'exit'
      case '/stop':
        this.#view.note('There is no answer to stop.')
        return undefined
      case '/agents': {
        const agents = await client.call('GET', '/api/agents', v.array(AgentItem))
        this.#view.note(
          renderTable(
            ['', 'NAME', 'STATE', 'MODEL'],
            agents.map((agent) => [
              agent.id === this.#agent.id ? '*' : '',
              agent.name,
              agent.state,
              `${agent.model_provider}/${agent.model_name}`,
            ]),
          ),
        )
        return undefined
      }
      case '/agent':
        this.#agent = await requireAgent(client, rest || undefined)
        this.#sessionId = undefined
        this.greet()
        return undefined
      case '/retry':
        await this.#retry()
        return undefined
      case '/details': {
        const id = rest || this.#approvals.waiting[0]?.id
        if (id === undefined) this.#view.note('Nothing waits for approval.')
        else this.#view.note(await renderDetails(client, id))
        return undefined
      }
      default: {
        const {
          content,
          session_id: session,
          thinking,
        } = await client.call('POST', `/api/agents/${this.#agent.id}/commands`, Answered, {
          body: {
            command: text,
            ...(this.#sessionId === undefined ? {} : { session_id: this.#sessionId }),
            ...(this.#thinking === undefined ? {} : { thinking: this.#thinking }),
          },
          // A summary is written by a model.
          timeoutMs: 300_000,
        })
        if (this.#sessionId !== undefined) this.#sessionId = session
        this.#thinking = thinking ?? undefined
        const more = own.map(([word, meaning]) => `${word}: ${meaning}`).join('\n')
        this.#view.note(escapeControls(name === '/help' ? `${content}\n${more}\n\n${keys}` : content, true))
        return undefined
      }
    }
  }
}
