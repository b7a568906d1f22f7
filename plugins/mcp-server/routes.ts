import * as v from 'valibot'
import { defineRoute, isObject, rawBody } from 'svc/sdk'
import type { AnyRoute, Problem, Reply, RequestFacts } from 'svc/sdk'
import type { McpHttpRequest } from './http/endpoint.ts'
import { costOfBody } from './http/message.ts'

export interface McpRouteDeps {
  readonly maxBodyBytes: number
  /** `server`: the MCP server behind the daemon that is meant, if any. */
  handle(request: McpHttpRequest, server: string | undefined): Promise<Reply>
}

const Message = v.looseObject({
  jsonrpc: v.optional(v.literal('2.0')),
  id: v.optional(v.union([v.string(), v.number()])),
  method: v.optional(v.string()),
})
const Answer = v.looseObject({
  jsonrpc: v.literal('2.0'),
  id: v.optional(v.nullable(v.union([v.string(), v.number()]))),
  result: v.optional(v.record(v.string(), v.unknown())),
  error: v.optional(v.looseObject({ code: v.number(), message: v.string() })),
})
const Ended = v.object({ status: v.literal('ok') })
const ServerParams = v.object({ server: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9-]{0,31}$/)) })

const description =
  'Streamable HTTP of the Model Context Protocol, revisions 2024-11-05 to 2025-11-25 with sessions, and 2026-07-28 ' +
  'without. A single request without a handshake, such as `tools/list`, is answered as JSON. `X-Svc-Agent-Id` names ' +
  'the agent whose tools are meant.'
const json = { json: Answer }
const answers = {
  202: { description: 'A notification or an answer was taken.' },
  400: { description: 'The message is broken, or a header is missing.', ...json },
  404: { description: 'There is no such session, or no such method.', ...json },
  405: { description: 'Clients of this revision have no such stream.', ...json },
  406: { description: 'The client does not accept the answer.', ...json },
  409: { description: 'Somebody reads this stream already.', ...json },
  413: { description: 'The message is too large.', ...json },
  415: { description: 'The message is no JSON.', ...json },
  429: { description: 'Too many requests of the session run.', ...json },
  499: { description: 'The client has left.' },
  500: { description: 'The daemon failed; its log says why.', ...json },
  503: { description: 'There are too many sessions.', ...json },
}

export function mcpRoutes(deps: McpRouteDeps): readonly AnyRoute[] {
  return [
    ...routesOf('/mcp', 'the daemon', undefined, deps),
    ...routesOf('/mcp/:server', 'an MCP server of the daemon', ServerParams, deps),
  ]
}

function routesOf(
  path: `/${string}`,
  what: string,
  params: typeof ServerParams | undefined,
  { maxBodyBytes, handle }: McpRouteDeps,
): readonly AnyRoute[] {
  const shared = {
    path,
    description,
    auth: 'bearer' as const,
    params: params as typeof ServerParams,
    returns: Answer,
    produces: 'text/event-stream',
    answers,
    renderError,
    errors: ['payload_too_large', 'not_found', 'service_unavailable'] as const,
  }
  type Input = RequestFacts & { readonly params: unknown; readonly signal: AbortSignal }
  const request = (method: McpHttpRequest['method'], input: Input, body?: Uint8Array): Promise<Reply> => {
    const server = isObject(input.params) ? input.params['server'] : undefined
    return handle({ method, body, facts: input }, typeof server === 'string' ? server : undefined)
  }
  return [
    defineRoute({
      ...shared,
      method: 'POST',
      summary: `Send a message of MCP to ${what}`,
      effect: 'conversation',
      cost: 2,
      costOf: (body) => costOfBody(body, params === undefined),
      body: rawBody(maxBodyBytes, Message),
      handle: (input) => request('POST', input, input.body),
      example: {
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
        returns: { jsonrpc: '2.0', id: 1, result: { tools: [] } },
      },
    }),
    defineRoute({
      ...shared,
      method: 'GET',
      summary: `Follow a session of MCP with ${what}`,
      effect: 'read',
      cost: 2,
      feed: true,
      handle: (input) => request('GET', input),
    }),
    defineRoute({
      ...shared,
      method: 'DELETE',
      summary: `End a session of MCP with ${what}`,
      effect: 'conversation',
      cost: 2,
      returns: Ended,
      answers: { 400: answers[400], 404: answers[404] },
      handle: (input) => request('DELETE', input),
    }),
  ]
}

/** Clients of MCP read errors of JSON-RPC only. */
function renderError({ status, code, message, details }: Problem): object {
  return {
    jsonrpc: '2.0',
    error: { code: status === 400 ? -32_600 : -32_000, message, data: { ...details, code } },
    id: null,
  }
}
