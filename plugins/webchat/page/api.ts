import * as v from 'valibot'
import {
  AgentList,
  ApprovalPage,
  ApprovalView,
  Canvas as CanvasView,
  CommandAnswer,
  CommandPage,
  CreatedSession,
  FoundMessages,
  GrantPage,
  MemoryCounts,
  ModelList,
  Status,
  Paired,
  PairingCode,
  PluginPageList,
  Problem,
  ProviderList,
  EndedTurn,
  SessionPage,
  SessionView,
  SkillList,
  Spawned,
  AgentGuide,
  TemplateDetail,
  TemplateList,
  TestedProvider,
  Ticket,
  TurnPage,
  Uploaded,
  UsedMemoryList,
  WholeSession,
} from './wire.ts'
import type { AnswerDetails } from './approvals.ts'
import type {
  AgentSummary,
  Approval,
  Canvas,
  Grant,
  Model,
  PluginPage,
  Provider,
  ServerFrame,
  SessionItem,
  Skill,
  SlashCommand,
  Template,
  TemplateNeeds,
  Turn,
  UsedMemory,
} from './wire.ts'
import type { AttachedFile } from './attached.ts'
import { postFile } from './upload.ts'
import { readEvents, readFollowed } from './events.ts'
import type { Followed } from './events.ts'

/** A refusal of the daemon, or `unreachable` when it did not answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: string
  readonly status: number
  readonly retryAfterSecs: number | undefined
  constructor(code: string, status: number, message: string, retryAfterSecs?: number) {
    super(message)
    this.code = code
    this.status = status
    this.retryAfterSecs = retryAfterSecs
  }
}

export interface NewMessage {
  readonly message: string
  /** The active session without it. */
  readonly session_id: string | undefined
  readonly attachments: readonly { readonly file_id: string }[]
}

/** Messages read at a time. */
export const pageMessages = 100
/** The most that the daemon gives at a time. */
export const MAX_PAGE_MESSAGES = 1000

export interface ApiHandlers {
  /** The daemon does not accept the key. */
  readonly onRefused?: () => void
  /** The key is good, and not for this. Whether to send the request again. */
  readonly onForbidden?: (message: string) => Promise<boolean>
}

/**
 * The daemon that served this page: paths are relative to the page's own origin, and no address is ever taken from the
 * URL.
 */
export class Api {
  #key: string | undefined
  readonly #handlers: ApiHandlers
  constructor(handlers: ApiHandlers = {}) {
    this.#handlers = handlers
  }

  useKey(key: string | undefined): void {
    this.#key = key
  }

  agents(): Promise<readonly AgentSummary[]> {
    return this.#json('GET', '/api/agents', AgentList)
  }
  /**
   * The newest messages of a session, the agent's active one without its id; or the page that ends before a message.
   */
  session(
    agentId: string,
    sessionId: string | undefined,
    { before, limit = pageMessages }: { readonly before?: string; readonly limit?: number } = {},
  ): Promise<SessionView> {
    const query = `?limit=${limit}${before === undefined ? '' : `&before=${encodeURIComponent(before)}`}`
    const path =
      sessionId === undefined
        ? `/api/agents/${encodeURIComponent(agentId)}/session`
        : `/api/sessions/${encodeURIComponent(sessionId)}`
    return this.#json('GET', path + query, SessionView)
  }
  /** Of one agent, the newest first. */
  async sessions(agentId: string): Promise<readonly SessionItem[]> {
    return (await this.#json('GET', `/api/agents/${encodeURIComponent(agentId)}/sessions`, SessionPage)).sessions
  }
  async activate(agentId: string, sessionId: string): Promise<void> {
    await this.#json(
      'POST',
      `/api/agents/${encodeURIComponent(agentId)}/sessions/${encodeURIComponent(sessionId)}/switch`,
      v.unknown(),
      {},
    )
  }
  async label(sessionId: string, label: string | null): Promise<void> {
    await this.#json('PUT', `/api/sessions/${encodeURIComponent(sessionId)}/label`, v.unknown(), { label })
  }
  /** `outlivesPage`: the request goes on when the page that sends it ends. */
  async removeSession(sessionId: string, { outlivesPage = false } = {}): Promise<void> {
    const path = `/api/sessions/${encodeURIComponent(sessionId)}`
    await this.#json('DELETE', path, v.unknown(), undefined, { keepalive: outlivesPage })
  }
  /** A new session, which becomes the active one. What runs in the one before goes on. */
  async createSession(agentId: string): Promise<string> {
    const path = `/api/agents/${encodeURIComponent(agentId)}/sessions`
    return (await this.#json('POST', path, CreatedSession, {})).session_id
  }
  /** A copy of a session up to one message, which becomes the active one. */
  async branch(sessionId: string, messageId: string): Promise<string> {
    const path = `/api/sessions/${encodeURIComponent(sessionId)}/branch`
    return (await this.#json('POST', path, CreatedSession, { message: messageId })).session_id
  }
  /** Puts a file into the workspace of an agent, where a message can refer to it. */
  async upload(
    agentId: string,
    file: File,
    onProgress: (progress: number) => void,
    signal: AbortSignal,
  ): Promise<AttachedFile> {
    const path = `/api/agents/${encodeURIComponent(agentId)}/upload`
    const send = (): Promise<Response> => {
      const headers = {
        ...this.#authorization(),
        'content-type': file.type === '' ? 'application/octet-stream' : file.type,
        'x-filename': encodeURIComponent(file.name),
      }
      return postFile(path, file, { headers, onProgress, signal })
    }
    const response = await this.#accepted(send, 'POST', signal)
    const { file_id: fileId, filename: name } = v.parse(Uploaded, await response.json())
    return { fileId, name }
  }
  /** A file that was sent for an agent. */
  async uploaded(fileId: string): Promise<Blob> {
    return (await this.#send('GET', `/api/uploads/${encodeURIComponent(fileId)}`, undefined)).blob()
  }
  /** The messages of people and agents that have all of these words, the newest first. */
  searchMessages(text: string, signal: AbortSignal): Promise<FoundMessages> {
    const path = `/api/sessions/search?limit=50&q=${encodeURIComponent(text)}`
    return this.#json('GET', path, FoundMessages, undefined, { signal })
  }
  /** A session with all its messages, with every field that the daemon tells. */
  async wholeSession(sessionId: string): Promise<WholeSession> {
    const path = `/api/sessions/${encodeURIComponent(sessionId)}?limit=${MAX_PAGE_MESSAGES}`
    const whole = await this.#json('GET', path, WholeSession)
    const messages = [...whole.messages]
    for (let first = messages[0]?.id; first !== undefined;) {
      const earlier = await this.#json('GET', `${path}&before=${encodeURIComponent(first)}`, WholeSession)
      messages.unshift(...earlier.messages)
      first = earlier.messages[0]?.id
    }
    return { ...whole, messages }
  }
  /** What happens in a session from now on. Throws what the daemon refused. */
  async *follow(sessionId: string, signal: AbortSignal): AsyncGenerator<Followed> {
    const path = `/api/sessions/${encodeURIComponent(sessionId)}/stream`
    yield* readFollowed(await this.#send('GET', path, undefined, { signal }))
  }
  canvas(id: string): Promise<Canvas> {
    return this.#json('GET', `/api/canvas/${encodeURIComponent(id)}`, CanvasView)
  }
  /** How many memories the turns were told of; those with none are missing. */
  async memoryCounts(turnIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { turns } = await this.#json('GET', `/api/memory/turns?turn_ids=${turnIds.join(',')}`, MemoryCounts)
    return new Map(turns.map(({ turn_id: turnId, memories }) => [turnId, memories]))
  }
  usedMemories(turnId: string): Promise<{ memories: readonly UsedMemory[]; forgotten: number }> {
    return this.#json('GET', `/api/memory/turns/${encodeURIComponent(turnId)}`, UsedMemoryList)
  }
  /** The pages that plugins bring. */
  async pages(): Promise<readonly PluginPage[]> {
    return (await this.#json('GET', '/api/pages', PluginPageList)).pages
  }
  async retryTurn(turnId: string): Promise<void> {
    await this.#json('POST', `/api/turns/${encodeURIComponent(turnId)}/retry`, v.unknown(), {})
  }
  async dropTurn(turnId: string): Promise<void> {
    await this.#json('POST', `/api/turns/${encodeURIComponent(turnId)}/drop`, v.unknown(), {})
  }
  /** The newest messages to an agent with their state, the newest one first. */
  async turns(agentId: string): Promise<readonly Turn[]> {
    return (await this.#json('GET', `/api/agents/${encodeURIComponent(agentId)}/turns?limit=20`, TurnPage)).turns
  }
  turn(agentId: string, turnId: string): Promise<EndedTurn> {
    return this.#json(
      'GET',
      `/api/agents/${encodeURIComponent(agentId)}/turns/${encodeURIComponent(turnId)}`,
      EndedTurn,
    )
  }
  /** By a manifest, or by a template and a name. `skills`: these and no other. */
  spawn(
    agent: { readonly manifest_toml: string } | { readonly template: string; readonly name: string },
    skills: readonly string[] | undefined,
  ): Promise<{ agent_id: string; name: string }> {
    return this.#json('POST', '/api/agents', Spawned, { ...agent, skills })
  }
  /** Those that can be used, by name. */
  async skills(): Promise<readonly Skill[]> {
    const { skills } = await this.#json('GET', '/api/skills', SkillList)
    return skills.filter(({ enabled }) => enabled)
  }
  async templates(): Promise<readonly Template[]> {
    return (await this.#json('GET', '/api/templates', TemplateList)).templates
  }
  template(name: string): Promise<TemplateNeeds> {
    return this.#json('GET', `/api/templates/${encodeURIComponent(name)}`, TemplateDetail)
  }
  /** How to begin with an agent; empty when its manifest does not say. */
  async guide(agentId: string): Promise<string> {
    return (await this.#json('GET', `/api/agents/${encodeURIComponent(agentId)}`, AgentGuide)).guide
  }
  async kill(agentId: string): Promise<void> {
    await this.#json('DELETE', `/api/agents/${encodeURIComponent(agentId)}`, v.unknown())
  }
  /** Answers the new agent. */
  duplicate(agentId: string, name: string): Promise<{ agent_id: string; name: string }> {
    return this.#json('POST', `/api/agents/${encodeURIComponent(agentId)}/clone`, Spawned, { new_name: name })
  }
  async move(agentId: string, command: 'suspend' | 'resume'): Promise<void> {
    await this.#json('PUT', `/api/agents/${encodeURIComponent(agentId)}/${command}`, v.unknown())
  }
  async setModel(agentId: string, provider: string, model: string): Promise<void> {
    await this.#json('PUT', `/api/agents/${encodeURIComponent(agentId)}/model`, v.unknown(), { provider, model })
  }
  /** Those that can be used now, of one provider or of all. */
  async models(provider?: string): Promise<readonly Model[]> {
    const query = provider === undefined ? '' : `&provider=${encodeURIComponent(provider)}`
    return (await this.#json('GET', `/api/models?available=true${query}`, ModelList)).models
  }
  /** Those an account is made at, or that run on this machine. */
  async providers(): Promise<readonly Provider[]> {
    const { providers } = await this.#json('GET', '/api/providers', ProviderList)
    return providers.filter(({ name }) => name !== 'builtin')
  }
  async setProviderKey(provider: string, key: string): Promise<void> {
    await this.#json('POST', `/api/providers/${encodeURIComponent(provider)}/key`, v.unknown(), { key })
  }
  async setProviderAddress(provider: string, url: string): Promise<void> {
    await this.#json('PUT', `/api/providers/${encodeURIComponent(provider)}/url`, v.unknown(), { url })
  }
  testProvider(provider: string): Promise<{ status: string; error?: string | undefined }> {
    return this.#json('POST', `/api/providers/${encodeURIComponent(provider)}/test`, TestedProvider)
  }
  async useByDefault(provider: string, model: string): Promise<void> {
    await this.#json('PUT', '/api/config/provider', v.unknown(), { provider, model })
  }
  async reset(agentId: string): Promise<void> {
    await this.#json('POST', `/api/agents/${encodeURIComponent(agentId)}/session/reset`, v.unknown(), {})
  }
  /** Cancels the answer of one session, or of all sessions of the agent. */
  async stop(agentId: string, sessionId?: string): Promise<void> {
    await this.#json('POST', `/api/agents/${encodeURIComponent(agentId)}/stop`, v.unknown(), { session_id: sessionId })
  }

  approvals(): Promise<{ approvals: readonly Approval[] }> {
    return this.#json('GET', '/api/approvals?status=pending', ApprovalPage)
  }
  approval(id: string): Promise<Approval> {
    return this.#json('GET', `/api/approvals/${encodeURIComponent(id)}`, ApprovalView)
  }
  async answerApproval(
    id: string,
    answer: 'once' | 'session' | 'reject',
    { reason, content }: AnswerDetails = {},
  ): Promise<void> {
    const verb = answer === 'reject' ? 'reject' : 'approve'
    const body = verb === 'reject' ? { reason } : { scope: answer === 'session' ? answer : undefined, content }
    await this.#json('POST', `/api/approvals/${encodeURIComponent(id)}/${verb}`, v.unknown(), body)
  }

  /** What passes without a question until its conversation ends. */
  async grants(): Promise<readonly Grant[]> {
    return (await this.#json('GET', '/api/approvals/grants', GrantPage)).grants
  }
  async revokeGrant(id: string): Promise<void> {
    await this.#json('DELETE', `/api/approvals/grants/${encodeURIComponent(id)}`, v.unknown())
  }
  status(): Promise<Status> {
    return this.#json('GET', '/api/status', Status)
  }
  async commands(): Promise<readonly SlashCommand[]> {
    return (await this.#json('GET', '/api/commands?surface=web', CommandPage)).commands
  }
  command(agentId: string, command: string, sessionId: string | undefined): Promise<CommandAnswer> {
    return this.#json('POST', `/api/agents/${encodeURIComponent(agentId)}/commands`, CommandAnswer, {
      command,
      ...(sessionId === undefined ? {} : { session_id: sessionId }),
    })
  }

  async signOut(): Promise<void> {
    await this.#json('POST', '/api/auth/logout', v.unknown(), {})
  }
  async pairingCode(): Promise<string> {
    return (await this.#json('POST', '/api/pairing/request', PairingCode)).pairing_code
  }
  pair(device: {
    readonly pairing_code: string
    readonly display_name: string
    readonly platform: string
  }): Promise<v.InferOutput<typeof Paired>> {
    return this.#json('POST', '/api/pairing/complete', Paired, device)
  }
  async removeDevice(id: string): Promise<void> {
    await this.#json('DELETE', `/api/pairing/devices/${encodeURIComponent(id)}`, v.unknown())
  }

  /**
   * An open attempt at the agent's socket. A browser cannot send the key with an upgrade, so a one-use ticket replaces
   * it.
   */
  async socket(agentId: string): Promise<WebSocket> {
    const url = new URL(`/api/agents/${encodeURIComponent(agentId)}/ws`, location.origin)
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
    if (this.#key === undefined) return new WebSocket(url)
    const { ticket } = await this.#json('POST', '/api/auth/ws-ticket', Ticket, {})
    return new WebSocket(url, ['svc', `svc.ticket.${ticket}`])
  }

  /** The same answer over server-sent events, as the frames the socket would have brought. */
  async *answer(agentId: string, message: NewMessage, signal: AbortSignal): AsyncGenerator<ServerFrame> {
    const response = await this.#send('POST', `/api/agents/${encodeURIComponent(agentId)}/message/stream`, message, {
      signal,
    })
    const turnId = response.headers.get('x-turn-id')
    if (turnId !== null) yield { type: 'thinking', turn_id: turnId }
    yield* readEvents(response)
  }

  async #json<S extends v.GenericSchema>(
    method: string,
    path: string,
    schema: S,
    body?: unknown,
    options: RequestInit = {},
  ): Promise<v.InferOutput<S>> {
    const response = await this.#send(method, path, body, options)
    const text = await response.text()
    return v.parse(schema, text === '' ? undefined : JSON.parse(text))
  }

  #send(method: string, path: string, body: unknown, options: RequestInit = {}): Promise<Response> {
    // The key may be another one when it is sent again.
    const send = (): Promise<Response> =>
      fetch(path, {
        method,
        headers: { ...this.#authorization(), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'error',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...options,
      })
    return this.#accepted(send, method, options.signal ?? undefined)
  }
  #authorization(): Record<string, string> {
    return this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }
  }
  async #accepted(send: () => Promise<Response>, method: string, signal: AbortSignal | undefined): Promise<Response> {
    let response: Response
    try {
      response = await send()
    } catch (error) {
      if (signal?.aborted) throw error
      throw new ApiError('unreachable', 0, 'The daemon does not answer. Is it running?')
    }
    if (response.ok) return response
    const problem = await readProblem(response)
    if (response.status === 401) this.#handlers.onRefused?.()
    const isForbidden = response.status === 403 && method !== 'GET'
    if (isForbidden && (await this.#handlers.onForbidden?.(problem.message)) === true)
      return this.#accepted(send, method, signal)
    throw problem
  }
}

async function readProblem(response: Response): Promise<ApiError> {
  const retryAfterSecs = Number(response.headers.get('retry-after')) || undefined
  const text = await response.text()
  let message = `The daemon answered ${response.status}.`
  let code = response.status === 429 ? 'rate_limit' : `http_${response.status}`
  const body = v.safeParse(Problem, parseJson(text))
  if (body.success) {
    const { error } = body.output
    message = typeof error === 'string' ? error : error.message
    if (typeof error !== 'string' && error.code !== undefined) code = error.code
  }
  return new ApiError(code, response.status, message, retryAfterSecs)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  } // A proxy's HTML page, say: the status alone has to do.
}

/** One sentence for people, with what to do when that is known. */
export function explain(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.code === 'rate_limit')
      return `${error.message}. Wait ${error.retryAfterSecs ?? 60} seconds, then try again.`
    return error.message
  }
  if (error instanceof v.ValiError)
    return 'The daemon gave an answer this page does not understand. Reload the page; it may be older than the daemon.'
  return error instanceof Error ? error.message : String(error)
}
