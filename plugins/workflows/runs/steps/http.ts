import { isObject } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { allowsHost } from 'svc/internal'
import type { Agents } from '../../../agents/contract.ts'
import { OutcomeUnknown } from '../../contract.ts'
import type { StepCall, StepResult } from '../../contract.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'

export interface HttpStepDeps {
  readonly fetch: Fetch
  readonly agents: Pick<Agents, 'require'>
  readonly maxBytes: number
}
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** What may be sent twice: HTTP says that the second one changes nothing. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/**
 * Sends a request through the outbound service, with the key of the attempt as `Idempotency-Key`. After a crash it is
 * sent again when HTTP or `repeatable` says that this does no harm.
 */
export function httpStep(deps: HttpStepDeps): BuiltInStep {
  return {
    name: 'http',
    check({ url, method, headers, repeatable }) {
      if (typeof url !== 'string' || !/^https?:\/\/|^\{\{/.test(url)) throw refuse('with.url', 'a web address')
      if (method !== undefined && !METHODS.has(String(method).toUpperCase()))
        throw refuse('with.method', `one of ${[...METHODS].join(', ')}`)
      if (headers !== undefined && !isObject(headers)) throw refuse('with.headers', 'an object of texts')
      if (repeatable !== undefined && typeof repeatable !== 'boolean') throw refuse('with.repeatable', 'true or false')
    },
    run: (call) => send(deps, call),
  }
}

async function send({ fetch, agents, maxBytes }: HttpStepDeps, call: StepCall): Promise<StepResult> {
  const { url, body, repeatable, headers } = call.with
  const method = String(call.with['method'] ?? (body === undefined ? 'GET' : 'POST')).toUpperCase()
  if (call.wasCutOff && !REPEATABLE.has(method) && repeatable !== true)
    throw new OutcomeUnknown(`the ${method} was cut off: it may have arrived, and is not sent again`)
  const agent = call.agentId === undefined ? undefined : await agents.require(call.agentId)
  const answer = await fetch(String(url), {
    method,
    signal: call.signal,
    maxBytes,
    headers: {
      ...(isObject(headers) &&
        Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))),
      ...(body !== undefined && typeof body !== 'string' && { 'content-type': 'application/json' }),
      'idempotency-key': call.key,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    // An agent's own limits hold for what is sent in its name.
    check(address) {
      if (agent && !allowsHost(agent.manifest.capabilities.network, address))
        throw new Error(`capabilities.network of ${agent.name} does not allow ${address.hostname}`)
    },
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`the server answered ${answer.status}: ${text.slice(0, 500)}`)
  return { outcome: 'done', output: text }
}
