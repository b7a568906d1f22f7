import { fileURLToPath } from 'node:url'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

export const fixture = fileURLToPath(new URL('../../fixtures/mcp-conformance', import.meta.url))

/** A daemon with the tools of the conformance suite, which the agent `conformance` may use. */
export async function openMcp(
  settings: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
  others: Record<string, unknown> = {},
): Promise<ChatStage> {
  const plugins = { paths: [fixture], 'mcp-server': { agent: 'conformance', ...settings }, ...others }
  const stage = await openChat({ config: { ...more, plugins } })
  await stage.spawn('conformance')
  return stage
}

export interface RpcAnswer {
  readonly status: number
  readonly session: string | null
  /** The last message: of a stream too. */
  readonly body: {
    readonly result?: Readonly<Record<string, unknown>>
    readonly error?: { readonly code: number; readonly message: string }
    readonly id?: unknown
  }
}
export const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A request without an SDK. */
export async function send(
  { host }: Pick<ChatStage, 'host'>,
  body: unknown,
  { path = '/mcp', headers = {} }: { readonly path?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<RpcAnswer> {
  const answer = await host.fetch(path, {
    method: 'POST',
    headers: { ...ACCEPT, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await answer.text()
  const last = answer.headers.get('content-type')?.startsWith('text/event-stream')
    ? text
        .split('\n')
        .findLast((line) => line.startsWith('data: {'))
        ?.slice(6)
    : text
  return {
    status: answer.status,
    session: answer.headers.get('mcp-session-id'),
    body: last ? (JSON.parse(last) as RpcAnswer['body']) : {},
  }
}
export const rpc = (method: string, params?: object, id: string | number = 1): object => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params && { params }),
})
const initialize = (protocolVersion: string): object =>
  rpc('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } })

/** Shakes hands; the headers of later requests. */
export async function openSession(
  stage: Pick<ChatStage, 'host'>,
  { revision = '2025-11-25', path = '/mcp', headers = {} } = {},
): Promise<{ readonly answer: RpcAnswer; readonly headers: Record<string, string> }> {
  const answer = await send(stage, initialize(revision), { path, headers })
  const own = { ...headers, 'mcp-session-id': answer.session ?? '' }
  await send(stage, { jsonrpc: '2.0', method: 'notifications/initialized' }, { path, headers: own })
  return { answer, headers: own }
}
