import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  DaemonRefusal,
  escapeControls,
  exits,
  explainError,
  Failure,
  omitUndefined,
  renderFailure,
  toFailure,
} from 'svc/cli'
import type { Connection, ServerEvent, View } from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import type { AgentItem } from '../../agents/cli/client.ts'
import { ApprovalPrompt, lettersOf, renderDetails, renderQuestion } from '../../approvals/cli/client.ts'
import type { Approval } from '../../approvals/cli/client.ts'
import type { Session } from '../../sessions/cli/client.ts'
import { localCommands } from './local-commands.ts'
import { showRecent } from './recent.ts'
import { usageLine } from './usage-line.ts'
import { Done } from './events.ts'
import { AnswerDisplay, failureMessage, isCancelled, unanswered } from './answer-display.ts'
import { SessionWatch } from './session-watch.ts'
import { TurnStatus } from './turn-status.ts'

const CommandReply = v.looseObject({ content: v.string(), session_id: v.string(), thinking: v.nullish(v.boolean()) })
const Messages = v.looseObject({
  session_id: v.string(),
  messages: v.array(
    v.looseObject({
      turn_id: v.optional(v.string()),
      role: v.string(),
      content: v.string(),
      failed: v.optional(v.boolean(), false),
      mark: v.optional(v.string()),
    }),
  ),
})
const TurnEvent = v.looseObject({ turn_id: v.string() })
/** A summary is written by a model. */
const COMMAND_TIMEOUT_MS = 300_000

const keyHelp = [
  'Ctrl-C clears what is typed; with nothing typed it stops the answer, and without an answer it leaves when it is ' +
    'pressed twice. Ctrl-D leaves.',
  'Tab completes commands, agents after /agent, and paths such as ./notes. The arrow keys bring back what was typed, ' +
    'in earlier runs too.',
  'A pasted text is one message, however many lines it has. What is typed during an answer is sent after it.',
].join('\n')

export interface ConversationOptions {
  readonly connection: Connection
  readonly agent: AgentItem
  /** Talks in this session whatever the active one is; in the active one when absent. */
  readonly session: Session | undefined
  readonly view: View
  /** Prints every event as one JSON line on standard output. */
  readonly json: boolean
  /** A person types at a prompt, so one letter answers what an agent asks for. */
  readonly hasPrompt: boolean
  /** Shows the reply to a command; a note of the view when absent. */
  readonly onReply?: (text: string) => void
}

/** A slash and a word; a path is not one, nor is a text of several lines. */
const isCommand = (text: string): boolean => /^\/[a-zA-Z][a-zA-Z0-9-]*(?: |$)/.test(text) && !text.includes('\n')

/** `/approve [id]`, `/reject [id] [reason]`. */
function readDecision(line: string) {
  const [, verb, words = ''] = /^\s*\/(approve|reject)(?:\s+(.*))?$/s.exec(line) ?? []
  const given = words.trim()
  if (verb === 'approve' && !/\s/.test(given)) return { verb, id: given || undefined, reason: undefined } as const
  if (verb !== 'reject') return undefined
  const [, id, reason = ''] = /^(?:([\da-f-]{4,})(?:\s+|$))?(.*)$/is.exec(given) ?? []
  return { verb, id, reason: reason || undefined } as const
}

/** A conversation with one agent: sends messages and commands, and shows the answers. */
export class Conversation {
  readonly #options: ConversationOptions
  readonly #view: View
  readonly #display: AnswerDisplay
  readonly #approvals: ApprovalPrompt
  readonly #turnStatus: TurnStatus
  #agent: AgentItem
  #sessionId: string | undefined
  /** The manifest decides while it is undefined. */
  #thinking: boolean | undefined
  #answer: AbortController | undefined
  #watch: SessionWatch | undefined
  /** A command of this conversation may change the active one, and brought it to this one last. */
  #runsCommand = false
  #broughtTo: string | undefined
  /** Calls of tools without a result yet: one of them may need an approval. */
  #openCalls = 0
  /** Whether the last answer was stopped. */
  cancelled = false

  constructor(options: ConversationOptions) {
    const { connection, view, hasPrompt } = options
    this.#options = options
    this.#view = view
    this.#display = new AnswerDisplay(options)
    this.#agent = options.agent
    this.#sessionId = options.session?.id
    this.#approvals = new ApprovalPrompt({
      client: connection.client,
      view,
      agentId: () => this.#agent.id,
      onRefused: (error) => this.#report(error),
      // The stream of the answer reports a daemon that is gone; one without approvals has nothing to report.
      onLost: () => undefined,
      onAnswered: (tool) => view.status(tool === undefined ? 'waiting for the model' : `running ${tool}`),
      notify: hasPrompt ? undefined : (approval) => this.#announce(approval),
    })
    this.#turnStatus = new TurnStatus(connection.client, (text) => {
      if (!this.#approvals.current) view.status(text)
      if (!hasPrompt) view.note(this.#display.dim(`(${text})`))
    })
  }

  greet(): void {
    const { name, model_provider: provider, model_name: model } = this.#agent
    this.#view.note(
      `Talking to "${escapeControls(name)}" (${escapeControls(`${provider}/${model}`)}). /help lists the commands, ` +
        '/sessions earlier conversations; Ctrl-C stops an answer, twice leaves.',
    )
  }

  /** What shows what others say here, from its `run` to its `stop`. */
  watch(): SessionWatch {
    const { client } = this.#options.connection
    this.#watch = new SessionWatch({
      client,
      view: this.#view,
      display: this.#display,
      sessionId: async () => this.#sessionId ?? (await this.#readActive()).session_id,
      follows: (activeId) => this.#followsActive(activeId),
    })
    return this.#watch
  }
  #readActive() {
    const { client } = this.#options.connection
    return client.call('GET', `/api/agents/${this.#agent.id}/session?limit=1`, Messages)
  }
  /** Without a session of its own it goes where the agent is. */
  #followsActive(activeId: string): boolean {
    if (this.#sessionId !== undefined) return false
    if (!this.#runsCommand && activeId !== this.#broughtTo)
      this.#view.note(this.#display.dim('(another conversation is the active one now; what you type goes there)'))
    return true
  }

  /** Says something beside the answers. */
  say(text: string): void {
    this.#view.note(text)
  }

  /** Takes one line of input: a command or a message. */
  async take(line: string): Promise<'exit' | undefined> {
    const text = line.trim()
    if (text === '') return undefined
    if (isCommand(text)) return await this.#takeCommand(text)
    await this.#send(text)
    return undefined
  }

  async #takeCommand(text: string): Promise<'exit' | undefined> {
    const [agent, sessionId] = [this.#agent, this.#sessionId]
    this.#runsCommand = true
    try {
      return await callDaemon(this.#options.connection, () => this.#runCommand(text))
    } finally {
      this.#runsCommand = false
      if (agent !== this.#agent || sessionId !== this.#sessionId) this.#watch?.move()
    }
  }

  /** Whether the line answers what an agent asks for, which cannot wait for the end of the answer that waits for it. */
  answersApproval(line: string, begunAt: number): boolean {
    const decision = readDecision(line)
    if (decision) {
      const id = decision.id ?? this.#approvals.waiting[0]?.id
      if (id === undefined) this.#view.note('Nothing waits for approval.')
      else this.#approvals.decide(decision.verb, id, { reason: decision.reason })
      return true
    }
    if (!this.#options.hasPrompt) return false
    if (this.#approvals.takes(line, begunAt)) return true
    const { current } = this.#approvals
    if (current && !line.trim().startsWith('/'))
      this.#view.note(this.#display.dim(`(sent after this answer; the question takes ${lettersOf(current)})`))
    return false
  }

  /** Stops the running answer here and in the daemon; `false` when there is none. */
  cancel(): boolean {
    if (!this.#answer || this.cancelled) return false
    const answer = this.#answer
    this.cancelled = true
    // A session of its own leaves the others of the agent alone.
    const body = this.#sessionId === undefined ? undefined : { command: '/stop', session_id: this.#sessionId }
    const path = `/api/agents/${this.#agent.id}/${body ? 'commands' : 'stop'}`
    // The stream ends with the turn; when the turn cannot be stopped, the stream is left.
    this.#options.connection.client
      .call('POST', path, v.unknown(), { body, timeoutMs: 3000 })
      .catch((error: unknown) => this.#report(error))
      .finally(() => answer.abort(new Error('stopped')))
    return true
  }

  /** Shows a failure. Returns whether the conversation can go on after it. */
  showFailure(error: unknown): boolean {
    const failure = toFailure(error)
    this.#view.note(renderFailure(failure, false))
    return failure.exit !== exits.notRunning
  }

  /** Sends a message and shows the answer as it comes. Throws a `Failure`. */
  async #send(message: string): Promise<void> {
    const { client } = this.#options.connection
    const body = omitUndefined({ message, session_id: this.#sessionId, thinking: this.#thinking })
    const path = `/api/agents/${this.#agent.id}/message/stream`
    this.#watch?.send(message)
    await this.#follow((signal) => client.stream('POST', path, { body, signal }))
  }

  async #follow(open: (signal: AbortSignal) => AsyncIterable<ServerEvent>): Promise<void> {
    const { connection, json, hasPrompt } = this.#options
    this.#answer = new AbortController()
    this.#openCalls = 0
    this.cancelled = false
    let end: v.InferOutput<typeof Done> | undefined
    const begunAt = performance.now()
    this.#display.begin()
    if (!json) this.#turnStatus.restart(this.#agent.id)
    if (!json) this.#view.status('waiting for the model')
    try {
      for await (const event of open(this.#answer.signal)) {
        if (event.event === 'done') end = v.parse(Done, event.data)
        this.#handleEvent(event)
      }
    } catch (error) {
      if (!this.cancelled)
        throw error instanceof DaemonRefusal && error.turnId !== undefined
          ? unanswered(error.message, hasPrompt, error)
          : explainError(error, connection)
    } finally {
      this.#answer = undefined
      this.#approvals.drop()
      this.#turnStatus.stop()
      if (!json) this.#view.endAnswer()
    }
    if (this.cancelled) this.#view.note('(stopped)')
    else if (end && hasPrompt) this.#showUsage(end, (performance.now() - begunAt) / 1000)
    else if (!end)
      throw new Failure(
        exits.failed,
        'the answer broke off',
        'the log of the daemon says more; what was written is kept in the session',
      )
  }

  #showUsage(end: v.InferOutput<typeof Done>, secs: number): void {
    const line = usageLine(end, secs)
    if (line !== undefined) this.#view.note(this.#display.dim(`(${line})`))
  }

  #handleEvent(event: ServerEvent): void {
    const { json, hasPrompt } = this.#options
    if (json) process.stdout.write(`${JSON.stringify(event)}\n`)
    else this.#turnStatus.restart(this.#agent.id)
    this.#countCalls(event)
    const failure = failureMessage(event)
    if (failure !== undefined) throw unanswered(failure, hasPrompt)
    if (isCancelled(event)) this.cancelled = true
    if (!json) this.#display.show(event)
  }

  /** Between the start of a call and its result somebody may have to approve it. */
  #countCalls({ event }: ServerEvent): void {
    if (event === 'tool_use') this.#openCalls++
    else if (event === 'tool_result' && this.#openCalls > 0) this.#openCalls--
    else return
    if (this.#openCalls > 0) this.#approvals.start()
    else this.#approvals.stop()
  }

  /** Tells of an approval where nobody types letters. */
  #announce(approval: Approval): void {
    const id = approval.id.slice(0, 8)
    const elsewhere = commandLine(`approval approve ${id}`)
    this.#view.note(
      `${renderQuestion(approval, (text) => text)}  /approve ${id} or /reject ${id}; elsewhere: ${elsewhere}`,
    )
  }
  #report(error: unknown): void {
    this.#view.note(renderFailure(toFailure(explainError(error, this.#options.connection)), false))
  }

  async #runCommand(text: string): Promise<'exit' | undefined> {
    const [name = '', ...words] = text.split(/\s+/)
    const argument = words.join(' ')
    switch (name) {
      case '/exit':
      case '/quit':
        return 'exit'
      case '/stop':
        this.#view.note('There is no answer to stop.')
        return undefined
      case '/agent':
        this.#agent = await requireAgent(this.#options.connection.client, argument || undefined)
        this.#sessionId = undefined
        this.greet()
        return undefined
      case '/retry':
        await this.#retry()
        return undefined
      case '/thoughts':
        this.#reply(
          escapeControls(this.#display.thoughts.trim(), true) || 'Nothing was thought before the last answer.',
        )
        return undefined
      case '/details':
        await this.#showDetails(argument || this.#approvals.waiting[0]?.id)
        return undefined
      default:
        await this.#callCommand(name, text)
        return undefined
    }
  }

  async #showDetails(approvalId: string | undefined): Promise<void> {
    if (approvalId === undefined) this.#reply('Nothing waits for approval.')
    else this.#reply(await renderDetails(this.#options.connection.client, approvalId))
  }

  /** A command that the daemon knows. */
  async #callCommand(name: string, text: string): Promise<void> {
    const path = `/api/agents/${this.#agent.id}/commands`
    const reply = await this.#options.connection.client.call('POST', path, CommandReply, {
      body: omitUndefined({
        command: text,
        session_id: this.#sessionId,
        thinking: this.#thinking,
        surface: 'cli',
      }),
      timeoutMs: COMMAND_TIMEOUT_MS,
    })
    if (this.#sessionId !== undefined) this.#sessionId = reply.session_id
    this.#broughtTo = reply.session_id
    this.#thinking = reply.thinking ?? undefined
    const local = localCommands.map(([word, meaning]) => `${word}: ${meaning}`).join('\n')
    const content = name === '/help' ? `${reply.content}\n${local}\n\n${keyHelp}` : reply.content
    this.#reply(escapeControls(content, true))
    if (name === '/sessions' && text.trim() !== name && this.#options.hasPrompt)
      await showRecent(this.#options.connection.client, this.#view, reply.session_id)
  }
  #reply(text: string): void {
    if (this.#options.onReply) this.#options.onReply(text)
    else this.#view.note(text)
  }

  /** Sends the last message that failed once more, and shows its answer. */
  async #retry(): Promise<void> {
    const { client } = this.#options.connection
    const path =
      this.#sessionId === undefined ? `/api/agents/${this.#agent.id}/session` : `/api/sessions/${this.#sessionId}`
    const { session_id: sessionId, messages } = await client.call('GET', path, Messages)
    const turnId = messages.findLast(({ failed, mark }) => failed || mark === 'interrupted')?.turn_id
    const asked = messages.find(({ turn_id: id, role }) => id === turnId && role === 'User')?.content
    if (asked !== undefined) this.#watch?.send(asked)
    if (turnId === undefined) {
      this.#view.note('No message of this session has failed.')
      return
    }
    await this.#follow((signal) => this.#retryTurn(sessionId, turnId, signal))
  }
  /** The events of a turn that is retried. Its session is followed before that, so that none of them is missed. */
  async *#retryTurn(sessionId: string, turnId: string, signal: AbortSignal): AsyncIterable<ServerEvent> {
    const { client } = this.#options.connection
    let id: string | undefined
    for await (const event of client.stream('GET', `/api/sessions/${sessionId}/stream`, { signal })) {
      if (event.event === 'snapshot')
        id = (await client.call('POST', `/api/turns/${turnId}/retry`, TurnEvent, { signal })).turn_id
      else if (v.is(TurnEvent, event.data) && event.data.turn_id === id && event.event !== 'message') {
        yield event
        if (event.event === 'done' || event.event === 'error') return
      }
    }
  }
}
