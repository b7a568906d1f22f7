import * as v from 'valibot'
import { escapeControls } from '../log/text.ts'
import { DaemonRefusal } from '../net/daemon-client.ts'
import type { ServerEvent } from '../net/daemon-client.ts'
import { lettersOf, renderDetails, renderQuestion } from './approvals.ts'
import { AgentItem, ask, explain, requireAgent } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { renderTable } from './output.ts'
import { renderFailure, toFailure } from './report.ts'
import type { Session } from './sessions.ts'
import { ApprovalPrompt } from './terminal/approval-prompt.ts'
import { Chunk, describePhase, Done, Phase, Problem, ToolResult, ToolUse } from './terminal/events.ts'
import { paint } from './terminal/view.ts'
import type { View } from './terminal/view.ts'
import { Whereabouts } from './whereabouts.ts'
import { commandLine } from '../process/command-name.ts'

const Answered = v.looseObject({ content: v.string(), session_id: v.string(), thinking: v.nullish(v.boolean()) })

const Messages = v.looseObject({
  session_id: v.string(),
  messages: v.array(
    v.looseObject({
      turn_id: v.optional(v.string()),
      failed: v.optional(v.boolean(), false),
      mark: v.optional(v.string()),
    }),
  ),
})
const OfTurn = v.looseObject({ turn_id: v.string() })

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
  readonly #approvals: ApprovalPrompt
  readonly #whereabouts: Whereabouts
  #agent: AgentItem
  #sessionId: string | undefined
  /** What the manifest says while it is undefined. */
  #thinking: boolean | undefined
  #answer: AbortController | undefined
  /** Calls of tools whose result has not come: one of them may have to be approved. */
  #calls = 0
  /** Whether the last answer was ended by the user. */
  cancelled = false

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#view = parts.view
    this.#agent = parts.agent
    this.#sessionId = parts.session?.id
    this.#approvals = new ApprovalPrompt({
      client: parts.connection.client,
      view: parts.view,
      agentId: () => this.#agent.id,
      onRefused: (error) => this.#report(error),
      // The answer that is being read tells of a daemon that is gone; one without approvals has nothing to tell.
      onLost: () => undefined,
      onAnswered: (tool) => this.#view.status(tool === undefined ? 'waiting for the model' : `running ${tool}`),
      tell: parts.letters
        ? undefined
        : (approval) => {
            const id = approval.id.slice(0, 8)
            this.#view.note(
              `${renderQuestion(approval, (text) => text)}  /approve ${id} or /reject ${id}; elsewhere: ${commandLine(`approval approve ${id}`)}`,
            )
          },
    })
    this.#whereabouts = new Whereabouts(parts.connection.client, (text) => {
      if (!this.#approvals.asked) this.#view.status(text)
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
    const { client } = this.#parts.connection
    const path = `/api/agents/${this.#agent.id}/message/stream`
    await this.#follow((signal) => client.stream('POST', path, { body, signal }))
  }

  async #follow(open: (signal: AbortSignal) => AsyncIterable<ServerEvent>): Promise<void> {
    const { connection, json } = this.#parts
    this.#answer = new AbortController()
    this.#calls = 0
    this.cancelled = false
    let finished = false
    if (!json) this.#whereabouts.heard(this.#agent.id)
    if (!json) this.#view.status('waiting for the model')
    try {
      for await (const event of open(this.#answer.signal)) {
        if (json) process.stdout.write(`${JSON.stringify(event)}\n`)
        if (event.event === 'done') finished = true
        if (!json) this.#whereabouts.heard(this.#agent.id)
        this.#watchCalls(event)
        this.#show(event)
      }
    } catch (error) {
      if (!this.cancelled)
        throw error instanceof DaemonRefusal && error.turnId !== undefined
          ? this.#failed(error.message, error)
          : explain(error, connection)
    } finally {
      this.#answer = undefined
      this.#approvals.drop()
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
    const { session_id: sessionId, messages } = await client.call('GET', path, Messages)
    const turnId = messages.findLast(({ failed, mark }) => failed || mark === 'interrupted')?.turn_id
    if (turnId === undefined) {
      this.#view.note('No message of this session has failed.')
      return
    }
    await this.#follow((signal) => this.#again(sessionId, turnId, signal))
  }
  /** The events of a turn that is asked again. Its session is followed before that, so that none of them is missed. */
  async *#again(sessionId: string, turnId: string, signal: AbortSignal): AsyncIterable<ServerEvent> {
    const { client } = this.#parts.connection
    let id: string | undefined
    for await (const event of client.stream('GET', `/api/sessions/${sessionId}/stream`, { signal })) {
      if (event.event === 'snapshot')
        id = (await client.call('POST', `/api/turns/${turnId}/retry`, OfTurn, { signal })).turn_id
      else if (v.is(OfTurn, event.data) && event.data.turn_id === id && event.event !== 'message') {
        yield event
        if (event.event === 'done' || event.event === 'error') return
      }
    }
  }

  /** Between the start of a call and its result somebody may have to say yes. */
  #watchCalls({ event }: ServerEvent): void {
    if (event === 'tool_use') this.#calls++
    else if (event === 'tool_result' && this.#calls > 0) this.#calls--
    else return
    if (this.#calls > 0) this.#approvals.start()
    else this.#approvals.stop()
  }

  /** Whether the line answers what an agent asks for, which cannot wait for the end of the answer that waits for it. */
  answersApproval(line: string, begunAt: number): boolean {
    const [, verb, id = ''] = /^\s*\/(approve|reject)(?:\s+(\S+))?\s*$/.exec(line) ?? []
    if (verb === 'approve' || verb === 'reject') {
      const wanted = id || this.#approvals.waiting[0]?.id
      if (wanted === undefined) this.#view.note('Nothing waits for approval.')
      else this.#approvals.decide(verb, wanted, 'once')
      return true
    }
    if (!this.#parts.letters) return false
    if (this.#approvals.takes(line, begunAt)) return true
    const { asked } = this.#approvals
    if (asked && !line.trim().startsWith('/'))
      this.#view.note(this.#dim(`(sent after this answer; the question takes ${lettersOf(asked)})`))
    return false
  }

  /** Ends the running answer here and in the daemon; `false` when there is none. */
  cancel(): boolean {
    if (!this.#answer || this.cancelled) return false
    const answer = this.#answer
    this.cancelled = true
    // The stream ends when the turn has; if it cannot be stopped, leaving it has to do.
    // A conversation of its own leaves the others of the agent alone.
    const [path, body] =
      this.#sessionId === undefined
        ? ['stop', undefined]
        : ['commands', { command: '/stop', session_id: this.#sessionId }]
    this.#parts.connection.client
      .call('POST', `/api/agents/${this.#agent.id}/${path}`, v.unknown(), { body, timeoutMs: 3000 })
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
  /** A message that was accepted and not answered. */
  #failed(message: string, cause?: unknown): Failure {
    const advice = this.#parts.letters
      ? '/retry sends the message again, /drop takes it away; the log of the daemon says more'
      : 'send the message again, or look at the log of the daemon'
    return new Failure(exits.failed, message, advice, { cause })
  }
  #report(error: unknown): void {
    this.#view.note(renderFailure(toFailure(explain(error, this.#parts.connection)), false))
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
        throw this.#failed(
          content ?? message ?? (typeof error === 'string' ? error : error?.message) ?? 'the agent failed',
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
