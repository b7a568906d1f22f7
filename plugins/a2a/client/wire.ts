import { AgentCard, Role, TaskState } from '@a2a-js/sdk'
import type { Message, Part, Task } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import type { Client } from '@a2a-js/sdk/client'
import { isObject, readFailedBody, readFailedJson, readJson, readRetryAfter, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch, OutboundResponse } from 'svc/sdk'
import { HOP_COUNT } from '../hops.ts'
import type { ClientSettings } from './config.ts'
import type { SentState } from './model.ts'

export interface WireOptions {
  readonly fetch: Fetch
  /** The card in the form of protocol 1.0. */
  readonly card: unknown
  /** Where messages may go: the endpoints that were trusted. */
  readonly origins: ReadonlySet<string>
  /** Sent with each request, such as the credential. */
  readonly headers: Readonly<Record<string, string>>
  readonly settings: Pick<ClientSettings, 'request_timeout_ms' | 'answer_max_bytes' | 'answer_max_chars'>
}
/** What the other side says of a task. `taskId` is undefined where it answered at once, without a task. */
export interface RemoteTask {
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly state: SentState
  readonly text: string
}
export interface OutgoingMessage {
  readonly id: string
  readonly text: string
  readonly contextId: string | undefined
  readonly taskId: string | undefined
  /** Daemons that it came through. */
  readonly hops: number
}

const STATES: ReadonlyMap<TaskState, SentState> = new Map([
  [TaskState.TASK_STATE_SUBMITTED, 'submitted'],
  [TaskState.TASK_STATE_WORKING, 'working'],
  [TaskState.TASK_STATE_COMPLETED, 'completed'],
  [TaskState.TASK_STATE_FAILED, 'failed'],
  [TaskState.TASK_STATE_CANCELED, 'cancelled'],
  [TaskState.TASK_STATE_INPUT_REQUIRED, 'inputRequired'],
  [TaskState.TASK_STATE_REJECTED, 'rejected'],
  [TaskState.TASK_STATE_AUTH_REQUIRED, 'authRequired'],
])
const MAX_ID = 512

/** One agent elsewhere, over whichever wire its card names. */
export class RemoteAgent {
  readonly #options: WireOptions
  #client: Promise<Client> | undefined
  constructor(options: WireOptions) {
    this.#options = options
  }

  /** Gives it a message. The same id again makes no second task where the other side follows the protocol. */
  async send({ id, text, contextId, taskId, hops }: OutgoingMessage, signal: AbortSignal): Promise<RemoteTask> {
    const message: Message = {
      messageId: id,
      contextId: contextId ?? '',
      taskId: taskId ?? '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
      metadata: { [HOP_COUNT]: hops },
      extensions: [HOP_COUNT],
      referenceTaskIds: [],
    }
    const configuration = {
      acceptedOutputModes: ['text/plain', 'application/json'],
      taskPushNotificationConfig: undefined,
      returnImmediately: true,
    }
    const request = { tenant: '', message, configuration, metadata: undefined }
    const answer = await this.#ask((client) => client.sendMessage(request, { signal }))
    if ('parts' in answer)
      return {
        taskId: undefined,
        contextId: this.#idOf(answer.contextId),
        state: 'completed',
        text: this.#clean(textOf(answer.parts)),
      }
    return this.#read(answer, taskId)
  }

  async get(taskId: string, signal: AbortSignal): Promise<RemoteTask> {
    return this.#read(
      await this.#ask((client) => client.getTask({ tenant: '', id: taskId, historyLength: 1 }, { signal })),
      taskId,
    )
  }
  async cancel(taskId: string, signal: AbortSignal): Promise<RemoteTask> {
    return this.#read(
      await this.#ask((client) => client.cancelTask({ tenant: '', id: taskId, metadata: undefined }, { signal })),
      taskId,
    )
  }

  #read(task: Task, expected: string | undefined): RemoteTask {
    const taskId = this.#idOf(task.id)
    if (taskId === undefined) throw this.#malformed('answered with a task that has no id')
    if (expected !== undefined && taskId !== expected) throw this.#malformed('answered for another task')
    const state = STATES.get(task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED)
    if (!state) throw this.#malformed('answered with a task that has no state')
    const artifacts = (task.artifacts ?? []).map(({ parts }) => textOf(parts)).filter((text) => text !== '')
    const said = textOf(task.status?.message?.parts ?? [])
    const last = (task.history ?? []).findLast(({ role }) => role === Role.ROLE_AGENT)
    const text = artifacts.length > 0 ? artifacts.join('\n\n') : said === '' ? textOf(last?.parts ?? []) : said
    return { taskId, contextId: this.#idOf(task.contextId), state, text: this.#clean(text) }
  }
  #clean(text: string): string {
    return this.#withoutSecrets(text.toWellFormed()).slice(0, this.#options.settings.answer_max_chars)
  }
  /** The other side may repeat what it was sent, and answers are stored and shown. */
  #withoutSecrets(text: string): string {
    let hidden = text
    for (const value of Object.values(this.#options.headers))
      hidden = hidden.replaceAll(value.replace(/^Bearer /, ''), '[secret]')
    return hidden
  }
  #idOf(text: string): string | undefined {
    return this.#withoutSecrets(text) === text ? idOf(text) : undefined
  }
  #malformed(what: string): UpstreamFailure {
    return new UpstreamFailure(this.#host(), `${this.#host()} ${what}`, { reason: 'malformed', retry: 'never' })
  }
  #host(): string {
    return [...this.#options.origins].map((origin) => new URL(origin).host).join(', ')
  }

  async #ask<T>(work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await work(await (this.#client ??= this.#connect()))
    } catch (error) {
      throw this.#explain(error)
    }
  }
  /** What the SDK throws is what the other side said, or something that it cannot read. */
  #explain(error: unknown): unknown {
    if (error instanceof Refusal || error instanceof UpstreamFailure || !(error instanceof Error)) return error
    if (error.name === 'AbortError' || error.name === 'TimeoutError') return error
    if (error.cause instanceof UpstreamFailure || error.cause instanceof Refusal) return error.cause
    const said = this.#withoutSecrets(error.message)
      .replaceAll(/\p{C}+/gu, ' ')
      .slice(0, 300)
    return new UpstreamFailure(this.#host(), `${this.#host()}: ${said}`, {
      reason: 'invalid_request',
      retry: 'never',
      cause: error,
    })
  }

  #connect(): Promise<Client> {
    const fetchImpl = this.#fetch()
    const legacyCompat = { enabled: true }
    const card: AgentCard = AgentCard.fromJSON(this.#options.card)
    const usable = card.supportedInterfaces.filter(({ url }) => this.#options.origins.has(URL.parse(url)?.origin ?? ''))
    const factory = new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        transports: [
          new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
          new RestTransportFactory({ fetchImpl, legacyCompat }),
        ],
        preferredTransports: ['JSONRPC', 'HTTP+JSON'],
        clientConfig: { polling: true },
      }),
    )
    return factory.createFromAgentCard({ ...card, supportedInterfaces: usable })
  }

  /** The guarded way out for the SDK: to trusted addresses only, also after a redirect. */
  #fetch(): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
    const { fetch, headers, origins, settings } = this.#options
    const check = (url: URL): void => {
      if (!origins.has(url.origin))
        throw new Refusal('forbidden', `the agent redirects to ${url.host}, which nobody trusted`)
    }
    return async (input, init) => {
      const answer = await fetch(input instanceof Request ? input.url : input, {
        method: init?.method ?? 'GET',
        headers: { ...Object.fromEntries(new Headers(init?.headers)), ...headers },
        ...(typeof init?.body === 'string' && { body: init.body }),
        ...(init?.signal && { signal: init.signal }),
        check,
        maxBytes: settings.answer_max_bytes,
        headersTimeoutMs: settings.request_timeout_ms,
        totalTimeoutMs: settings.request_timeout_ms,
      })
      if (!answer.ok && (answer.status >= 500 || REFUSED.has(answer.status))) {
        const shown = await readFailedBody(answer)
        if (!isObject(readFailedJson(shown)) || REFUSED.has(answer.status)) throw failureOf(answer)
        return asResponse(answer, shown)
      }
      const text = await answer.text()
      // Parsed again by the SDK, which has no limit for its depth.
      if (text !== '') readJson(text)
      return asResponse(answer, text)
    }
  }
}
const REFUSED: ReadonlySet<number> = new Set([401, 403, 408, 429])

function asResponse(answer: OutboundResponse, text: string): Response {
  const type = answer.header('content-type') ?? 'application/json'
  return new Response(answer.status === 204 ? null : text, { status: answer.status, headers: { 'content-type': type } })
}
function failureOf(answer: OutboundResponse): UpstreamFailure {
  const { status } = answer
  const { host } = new URL(answer.url)
  const retryAfterSecs = readRetryAfter(answer.header('retry-after'), undefined, Date.now())
  const isAuth = status === 401 || status === 403
  return new UpstreamFailure(host, `${host} answered ${status}${isAuth ? ': it does not accept this daemon' : ''}`, {
    reason: isAuth ? 'auth' : status === 429 ? 'rate_limit' : 'server_error',
    retry: isAuth ? 'never' : 'later',
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** Ids are sent back as they are: one that no header or log should hold is none. */
function idOf(text: string): string | undefined {
  return text !== '' && text.length <= MAX_ID && !/\p{C}/u.test(text) ? text : undefined
}

function textOf(parts: readonly Part[]): string {
  return (parts ?? [])
    .map(({ content, filename, mediaType }) => {
      if (content?.$case === 'text') return content.value
      if (content?.$case === 'data') return JSON.stringify(content.value) ?? ''
      if (content === undefined) return ''
      const name = [filename, mediaType].filter((each) => each !== '').join(', ')
      return content.$case === 'url' ? `[file ${name} at ${content.value}]` : `[file ${name}]`
    })
    .filter((text) => text !== '')
    .join('\n')
}
/** The text of a message as clients send it: a text, or an object with parts. */
export function messageText(message: unknown): string {
  if (typeof message === 'string') return message
  const parts = isObject(message) && Array.isArray(message['parts']) ? message['parts'].filter(isObject) : []
  return parts
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .filter((text) => text !== '')
    .join('\n')
}
