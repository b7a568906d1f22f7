import { isObject, readJson } from 'svc/sdk'

/** Its cost is asked before it is answered. */
const known = new WeakMap<Uint8Array, unknown>()

/** Throws when it is no JSON. */
export function readMessage(body: Uint8Array): unknown {
  if (!known.has(body)) known.set(body, readJson(new TextDecoder('utf-8', { fatal: true }).decode(body)))
  return known.get(body)
}

/** A message to an agent costs what it costs over the API. */
export function costOfBody(body: Uint8Array, hasAgents: boolean): number {
  try {
    return [readMessage(body)].flat().reduce<number>((sum, one) => sum + costOf(one, hasAgents), 0)
  } catch {
    // The answer says what is wrong.
    return 0
  }
}
function costOf(message: unknown, hasAgents: boolean): number {
  if (!isObject(message) || message['method'] !== 'tools/call') return 0
  const name = isObject(message['params']) ? message['params']['name'] : ''
  return hasAgents && /^svc_(agent|workflow)_/.test(String(name)) ? 28 : 1
}
