import * as v from 'valibot'
import { escapeControls } from '../log/text.ts'
import type { ServerEvent } from '../net/daemon-client.ts'
import { ApprovalWatch } from './approval-watch.ts'
import { AgentItem, explain, requireAgent } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits, Failure } from './failure.ts'
import type { Session } from './sessions.ts'
import { note, renderTable } from './output.ts'
import { renderFailure, toFailure } from './report.ts'
import { Whereabouts } from './whereabouts.ts'

const Chunk = v.looseObject({ content: v.string() })
const ToolUse = v.looseObject({ tool: v.string() })
const ToolResult = v.looseObject({
  tool: v.string(),
  input: v.optional(v.unknown()),
  is_error: v.optional(v.boolean(), false),
})
const Done = v.looseObject({ stop: v.optional(v.string()) })
const Problem = v.looseObject({
  content: v.optional(v.string()),
  message: v.optional(v.string()),
  error: v.optional(v.union([v.string(), v.looseObject({ message: v.string() })])),
})

const help: readonly (readonly [command: string, meaning: string])[] = [
  ['/help', 'this list'],
  ['/new', 'start a new session'],
  ['/stop', 'end the answer that is being written'],
  ['/approve <id>', 'let the agent do what it asked for, once'],
  ['/reject <id>', 'do not let it'],
  ['/model [name]', 'show or change the model of this agent'],
  ['/agents', 'list the agents'],
  ['/agent <name>', 'talk to another one'],
  ['/exit', 'leave'],
]

interface ConversationParts {
  readonly connection: Connection
  readonly agent: AgentItem
  /** Talks here whatever the active session is; in the active one when absent. */
  readonly session: Session | undefined
  /** Every event as one JSON line on standard output. */
  readonly json: boolean
  readonly colored: boolean
}

/** A conversation with one agent on a terminal: messages, commands, and what is printed of an answer. */
export class Conversation {
  readonly #parts: ConversationParts
  readonly #approvals: ApprovalWatch
  readonly #whereabouts: Whereabouts
  #agent: AgentItem
  #sessionId: string | undefined
  #answer: AbortController | undefined
  /** Whether the last answer was ended by the user. */
  cancelled = false

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#agent = parts.agent
    this.#sessionId = parts.session?.id
    this.#approvals = new ApprovalWatch(parts.connection.client)
    this.#whereabouts = new Whereabouts(parts.connection.client, (text) => this.#dim(text))
  }

  get prompt(): string {
    return this.#parts.colored ? '\u001b[36m> \u001b[0m' : '> '
  }

  greet(): void {
    note(
      `Talking to "${this.#agent.name}" (${this.#agent.model_provider}/${this.#agent.model_name}). /help lists the commands, Ctrl-C ends an answer, then leaves.`,
    )
  }

  /** One line of input: a command or a message. */
  async take(line: string): Promise<'exit' | undefined> {
    const text = line.trim()
    if (text === '') return undefined
    if (!text.startsWith('/')) {
      await this.send(text)
      return undefined
    }
    try {
      return await this.#command(text)
    } catch (error) {
      throw explain(error, this.#parts.connection)
    }
  }

  /** Sends a message and prints the answer as it comes. Throws a `Failure`. */
  async send(message: string): Promise<void> {
    const { connection, json } = this.#parts
    this.#answer = new AbortController()
    this.cancelled = false
    let written = ''
    let finished = false
    if (!json) this.#whereabouts.heard(this.#agent.id)
    try {
      const path = `/api/agents/${this.#agent.id}/message/stream`
      const body = { message, ...(this.#sessionId === undefined ? {} : { session_id: this.#sessionId }) }
      for await (const event of connection.client.stream(path, { body, signal: this.#answer.signal })) {
        if (json) process.stdout.write(`${JSON.stringify(event)}\n`)
        if (event.event === 'done') finished = true
        if (!json) this.#whereabouts.heard(this.#agent.id)
        // Between the start of a call and its result somebody may have to say yes.
        if (event.event === 'tool_use') this.#approvals.start(this.#agent.id)
        else this.#approvals.stop()
        written = this.#show(event, written)
      }
    } catch (error) {
      if (!this.cancelled) throw explain(error, connection)
    } finally {
      this.#answer = undefined
      this.#approvals.stop()
      this.#whereabouts.end()
      if (!json && written !== '' && !written.endsWith('\n')) process.stdout.write('\n')
    }
    if (this.cancelled) note('(stopped)')
    else if (!finished)
      throw new Failure(
        exits.failed,
        'the answer broke off',
        'the log of the daemon says more; what was written is kept in the session',
      )
  }

  /** Whether the line answers what an agent asks for, which cannot wait for the end of the answer that waits for it. */
  answersApproval(line: string): boolean {
    const [, verb, id = ''] = /^\s*\/(approve|reject)(?:\s+(\S+))?\s*$/.exec(line) ?? []
    if (verb !== 'approve' && verb !== 'reject') return false
    this.#approvals
      .answer(verb, id)
      .catch((error: unknown) => note(renderFailure(toFailure(explain(error, this.#parts.connection)), false)))
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
      .catch((error: unknown) => note(renderFailure(toFailure(explain(error, this.#parts.connection)), false)))
      .finally(() => answer.abort(new Error('stopped')))
    return true
  }

  /** Prints a failure after which one can go on. */
  survives(error: unknown): boolean {
    const failure = toFailure(error)
    note(renderFailure(failure, false))
    return failure.exit !== exits.notRunning
  }

  #dim(text: string): string {
    return this.#parts.colored ? `\u001b[90m${text}\u001b[0m` : text
  }

  /** Prints one event; returns what is written of the answer so far. */
  #show({ event, data }: ServerEvent, written: string): string {
    const dim = (text: string): string => this.#dim(text)
    const out = (text: string): string => {
      if (!this.#parts.json) process.stdout.write(text)
      return written + text
    }
    switch (event) {
      case 'chunk':
        return out(escapeControls(v.parse(Chunk, data).content, true))
      case 'tool_use':
        if (!this.#parts.json)
          note(
            dim(
              `${written === '' || written.endsWith('\n') ? '' : '\n'}[${escapeControls(v.parse(ToolUse, data).tool)} …]`,
            ),
          )
        return written
      case 'tool_result': {
        const { tool, input, is_error: failed } = v.parse(ToolResult, data)
        if (!this.#parts.json)
          note(
            dim(
              `[${escapeControls(tool)} ${escapeControls(JSON.stringify(input ?? {})).slice(0, 200)}${failed ? ' failed' : ''}]`,
            ),
          )
        return written
      }
      case 'done':
        // Somebody else may have stopped it, on the page or through the API.
        if (v.parse(Done, data).stop === 'cancelled') this.cancelled = true
        return written
      case 'error': {
        const { content, message, error } = v.parse(Problem, typeof data === 'string' ? { message: data } : data)
        throw new Failure(
          exits.failed,
          content ?? message ?? (typeof error === 'string' ? error : error?.message) ?? 'the agent failed',
          'send the message again, or look at the log of the daemon',
        )
      }
      // Events of a newer daemon are no reason to fail.
      default:
        return written
    }
  }

  async #command(text: string): Promise<'exit' | undefined> {
    const { client } = this.#parts.connection
    const [name = '', ...words] = text.split(/\s+/)
    const rest = words.join(' ')
    const path = `/api/agents/${this.#agent.id}`
    switch (name) {
      case '/exit':
      case '/quit':
        return 'exit'
      case '/help':
        note(help.map(([word, meaning]) => `  ${word.padEnd(14)} ${meaning}`).join('\n'))
        return undefined
      case '/stop':
        note('There is no answer to stop.')
        return undefined
      case '/new':
      case '/reset':
        await client.call('POST', `${path}/session/reset`, v.unknown())
        note('A new session begins; the agent starts without what was said before.')
        return undefined
      case '/model':
        if (rest === '') note(`${this.#agent.model_provider}/${this.#agent.model_name}`)
        else {
          await client.call('PUT', `${path}/model`, v.unknown(), { body: { model: rest } })
          this.#agent = await requireAgent(client, this.#agent.id)
          note(`The model is ${this.#agent.model_provider}/${this.#agent.model_name} now.`)
        }
        return undefined
      case '/agents': {
        const agents = await client.call('GET', '/api/agents', v.array(AgentItem))
        note(
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
        this.greet()
        return undefined
      default:
        note(`There is no command ${escapeControls(name)}; /help lists them.`)
        return undefined
    }
  }
}
