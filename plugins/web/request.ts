import { allowsHost, fence } from 'svc/internal'
import { idempotencyKey, omitUndefined, Refusal } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { FetchInput, WebToolsDeps } from './tools.ts'

/** Sends a request as the manifest of the agent allows. */
export async function fetchPage(
  { agents, audit, fetch, limits }: WebToolsDeps,
  input: FetchInput,
  { agentId, signal, ...call }: ToolCallContext,
): Promise<string> {
  const { method, headers, body } = input
  const agent = await agents.require(agentId)
  if (method !== 'GET' && agent.permission === 'assist')
    throw new Refusal('forbidden', `This agent may only read: ${method} is refused.`)
  if (method === 'GET' && body !== undefined) throw new Refusal('invalid_request', 'body: a GET request has none.')
  const first = new URL(input.url)
  const check = (url: URL): void => checkHost(agent.manifest.capabilities.network, url, first)
  try {
    check(first)
    await audit.write({ event: 'network_access', agentId: agent.id, details: `${method} ${first.origin}` })
    const response = await fetch(first, {
      method,
      headers: method === 'GET' ? headers : withKey(headers, idempotencyKey(call)),
      ...omitUndefined({ body }),
      signal,
      check,
      maxBytes: limits.maxBytes,
      totalTimeoutMs: limits.timeoutSecs * 1000,
    })
    const { readPage } = await import('./page.ts')
    const { type, text } = await readPage(response, limits.maxChars)
    return `${response.status} ${response.url}${type === '' ? '' : ` (${type})`}\n${fence(text)}`
  } catch (error) {
    if (error instanceof Refusal && error.code === 'forbidden')
      await audit.write({
        event: 'capability_check',
        agentId: agent.id,
        details: `denied: ${method} ${first.origin}: ${error.message}`,
      })
    throw error
  }
}

const KEY_HEADER = 'idempotency-key'
/** A key of the agent's own has a meaning to it. */
function withKey(headers: Readonly<Record<string, string>>, key: string): Readonly<Record<string, string>> {
  return Object.keys(headers).some((name) => name.toLowerCase() === KEY_HEADER)
    ? headers
    : { ...headers, [KEY_HEADER]: key }
}
/** HTTP says of these that the second request changes nothing. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'PUT', 'DELETE'])
/** What became of a request that the end of the process cut off. */
export function recoverRequest(
  { idempotentHosts }: Pick<WebToolsDeps, 'idempotentHosts'>,
  { url, method }: FetchInput,
  call: ToolCallContext,
): Recovery {
  const address = new URL(url)
  if (REPEATABLE.has(method) || allowsHost(idempotentHosts, address)) return { outcome: 'repeat' }
  return {
    outcome: 'unknown',
    text:
      `unknown: the service stopped while the ${method} to ${address.host} was on its way. It may have arrived, and ` +
      `was not sent again. Its Idempotency-Key was ${idempotencyKey(call)}. Check before you repeat it.`,
  }
}

/** Throws `forbidden` for a host that the manifest of the agent does not allow. */
function checkHost(patterns: readonly string[], url: URL, first: URL): void {
  if (allowsHost(patterns, url)) return
  if (patterns.length === 0)
    throw new Refusal('forbidden', 'This agent may not use the network: capabilities.network of its manifest is empty.')
  const redirected = url.href === first.href ? '' : ', where it was redirected to'
  throw new Refusal(
    'forbidden',
    `This agent may not reach ${url.host}${redirected}. ` +
      `capabilities.network of its manifest allows: ${patterns.join(', ')}.`,
  )
}
