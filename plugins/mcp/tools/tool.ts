import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson } from 'svc/internal'
import { describeInput, idempotencyKey, Refusal } from 'svc/sdk'
import type { AnyTool, ToolAnswer, ToolCallContext } from 'svc/sdk'
import { HOP_COUNT, McpRequestError } from '../contract.ts'
import type { McpRequestOptions, McpTool } from '../contract.ts'
import { SessionLost } from '../connection/session.ts'
import type { Settings } from '../config.ts'
import type { Server } from '../servers/server.ts'
import type { ServerConfig } from '../servers/spec.ts'
import { toAnswer } from './answer.ts'
import { riskOf } from './risk.ts'

/** The key of a call in `_meta`: the same when the call is made again after a crash. */
export const IDEMPOTENCY_KEY = 'svc/idempotencyKey'
/** What connecting may add to a call: the answer of our own time limit comes before that of the registry. */
const MARGIN_SECS = 5

export interface ServerToolDeps {
  readonly server: Server
  readonly settings: Settings
  readonly counted: (server: string, outcome: 'ok' | 'error' | 'failed') => void
}

/** A tool of a server as one of the daemon's. */
export function serverTool(deps: ServerToolDeps, name: string, tool: McpTool): AnyTool {
  const { server, settings } = deps
  const { config } = server
  const risk = riskOf(config, tool)
  const timeoutSecs = config.tool_timeout_secs[tool.name] ?? config.timeout_secs
  const isRepeatable = config.trust_annotations && tool.annotations?.['idempotentHint'] === true
  return {
    name,
    ...(tool.title !== undefined && { title: tool.title }),
    description: tool.description ?? tool.title ?? `The tool ${tool.name} of the MCP server ${config.name}`,
    input: describeInput(v.looseObject({}), tool.inputSchema),
    ...(tool.outputSchema && { outputSchema: tool.outputSchema }),
    risk,
    labels: ['ExternalNetwork'],
    refuses: ['Secret', 'Pii'],
    timeoutSecs: timeoutSecs + settings.start_timeout_secs + MARGIN_SECS + waitingSecs(settings),
    assess: (input) => ({
      intent: `call ${tool.name} of the MCP server ${config.name}`,
      // Of this tool of this server: names may be those of others once servers come and go.
      standing: { key: identityOf(config, tool, input), covers: 'exactly this call' },
    }),
    run: (input, call) => run(deps, tool, input, call, timeoutSecs * 1000),
    ...(isRepeatable && { recover: () => Promise.resolve({ outcome: 'repeat' as const }) }),
  }
}

function identityOf({ name, transport, command, args, url }: ServerConfig, tool: McpTool, input: unknown): string {
  const identity = { name, transport, command, args, url, tool: tool.name, input }
  return createHash('sha256').update(canonicalJson(identity)).digest('hex')
}

/** Our own time limit pauses while a person is asked, that of the registry does not. */
const waitingSecs = (settings: Settings): number => settings.elicitations_per_call * settings.elicitation_timeout_secs

async function run(
  { server, settings, counted }: ServerToolDeps,
  tool: McpTool,
  input: unknown,
  call: ToolCallContext,
  timeoutMs: number,
): Promise<ToolAnswer> {
  server.calls++
  // The server may be another daemon: it knows how far a call may come.
  const _meta = { [IDEMPOTENCY_KEY]: idempotencyKey(call), [HOP_COUNT]: (call.hops ?? 0) + 1 }
  const params = { name: tool.name, arguments: input, _meta }
  const options: McpRequestOptions = {
    signal: call.signal,
    timeoutMs,
    caller: call,
    progress: call.progress,
  }
  try {
    const answer = await ask(server, (session) => session.callTool(params, options), call.signal)
    const shown = toAnswer(answer, settings.max_output_bytes)
    if (shown.failed) server.failedCalls++
    counted(server.name, shown.failed ? 'error' : 'ok')
    return shown
  } catch (error) {
    server.failedCalls++
    counted(server.name, 'failed')
    if (error instanceof McpRequestError)
      throw new Refusal('invalid_request', `${tool.name} of the MCP server "${server.name}": ${error.message}`)
    throw error
  }
}

/** A server that forgot the session has done nothing: it is asked once more in a new one. */
async function ask<T>(
  server: Server,
  send: (session: Awaited<ReturnType<Server['session']>>) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await send(await server.session(signal))
  } catch (error) {
    if (!(error instanceof SessionLost)) throw error
    return await send(await server.sessionAfterLoss(signal))
  }
}
