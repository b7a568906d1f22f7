import { v7 } from 'uuid'
import type { Hooks, Logger } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import { ApprovalRequested, ApprovalResolved } from '../../approvals/contract.ts'
import type { Approval, Approvals } from '../../approvals/contract.ts'
import type { ToolCallResult, ToolCalls } from '../../chat/contract.ts'
import type { McpObject } from '../contract.ts'
import type { McpCall } from './backend.ts'

export interface CallToolDeps {
  readonly toolCalls: ToolCalls
  readonly approvals: () => Approvals | undefined
  readonly approveByClient: boolean
  readonly log: Pick<Logger, 'debug'>
}
interface Waiting {
  readonly resolved: () => void
  readonly requested: (approval: Approval) => void
}

/** Calls tools for clients; a call that needs a person waits for the answer. */
export class ToolCaller {
  readonly #deps: CallToolDeps
  readonly #waiting = new Map<string, Waiting>()
  constructor(deps: CallToolDeps, hooks: Pick<Hooks, 'on'>) {
    this.#deps = deps
    hooks.on(ApprovalResolved, ({ approval }) => this.#waiting.get(approval.turnId)?.resolved())
    hooks.on(ApprovalRequested, ({ approval }) => this.#waiting.get(approval.turnId)?.requested(approval))
  }

  async call(agent: Agent, tool: string, args: unknown, call: McpCall): Promise<McpObject> {
    const id = v7()
    let step = 0
    const { progress } = call
    const request = {
      id,
      agentId: agent.id,
      sessionId: call.sessionId ?? id,
      entryPoint: 'mcp' as const,
      tool,
      args,
      hops: call.hops,
      signal: call.signal,
      ...(progress && {
        progress: (made: Parameters<typeof progress>[0]) => {
          step = Math.max(step, made.progress)
          progress(made)
        },
      }),
      ...(call.client && { client: call.client }),
    }
    let resolved = Promise.withResolvers<void>()
    this.#waiting.set(id, {
      resolved: () => resolved.resolve(),
      requested: (approval) => {
        step += 1
        call.progress?.({ progress: step, message: `Waits for an approval: ${approval.summary}` })
        if (this.#deps.approveByClient) void this.#askClient(approval, call)
      },
    })
    try {
      let result = await this.#deps.toolCalls.call({ ...request, isNew: true })
      while (result.outcome === 'waiting') {
        if (!result.counted) return tooMany(agent, result.untilMs)
        await settled(resolved.promise, result.untilMs, call.signal)
        resolved = Promise.withResolvers()
        result = await this.#deps.toolCalls.call({ ...request, counted: result.counted })
      }
      return toResult(result)
    } finally {
      this.#waiting.delete(id)
    }
  }

  /** Whoever sits at the client answers, beside everybody else who may. */
  async #askClient(approval: Approval, { client, principal, signal }: McpCall): Promise<void> {
    const approvals = this.#deps.approvals()
    if (!approvals || !client?.abilities['elicitation']) return
    const params = {
      message: `${approval.agentName} wants to ${approval.intent}: ${approval.summary}`,
      requestedSchema: {
        type: 'object',
        properties: { approve: { type: 'boolean', title: 'Approve', default: false } },
        required: ['approve'],
      },
    }
    try {
      const answer = (await client.request('elicitation/create', params, signal)) as {
        readonly action?: unknown
        readonly content?: { readonly approve?: unknown }
      }
      if (answer.action === 'cancel') return
      if (answer.action === 'accept' && answer.content?.approve === true)
        await approvals.approve(approval.id, principal, 'once')
      else await approvals.reject(approval.id, principal)
    } catch (error) {
      // It was answered elsewhere, the client left, or may not decide: the request stays as it is.
      if (!signal.aborted) this.#deps.log.debug(`the client did not decide about the approval ${approval.id}`, error)
    }
  }
}

/** A client would give up waiting before the minute is over, and never learn why. */
function tooMany({ name, manifest }: Agent, untilMs: number | undefined): McpObject {
  const secs = Math.max(1, Math.ceil(((untilMs ?? Date.now()) - Date.now()) / 1000))
  const text =
    `The agent ${name} may call ${manifest.resources.max_tool_calls_per_minute} tools a minute ` +
    `(max_tool_calls_per_minute of its manifest), and has. Call again in ${secs} seconds.`
  return { content: [{ type: 'text', text }], isError: true, _meta: { 'svc/retry_after_secs': secs } }
}

function toResult(result: Exclude<ToolCallResult, { outcome: 'waiting' }>): McpObject {
  if (result.outcome === 'unknown')
    return { content: [{ type: 'text', text: 'It is not known whether the call had its effect.' }], isError: true }
  const { text, content, structured, failed, labels } = result
  return {
    content: content ?? [{ type: 'text', text }],
    ...(structured && { structuredContent: structured }),
    ...(failed && { isError: true }),
    ...(labels.length > 0 && { _meta: { 'svc/labels': labels } }),
  }
}

const RETRY_MS = 60_000
/** Until the answer is there, or a time; a lost event costs a minute. */
function settled(resolved: Promise<void>, untilMs: number | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const abort = (): void => reject(signal.reason)
  const timer = setTimeout(resolve, Math.max(0, (untilMs ?? Date.now() + RETRY_MS) - Date.now())).unref()
  signal.addEventListener('abort', abort, { once: true })
  resolved.then(resolve, reject)
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  })
}
