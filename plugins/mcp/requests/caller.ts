import { Refusal } from 'svc/sdk'
import type { ServerRequest } from '../connection/features.ts'
import type { McpCaller, McpObject } from '../contract.ts'

/**
 * The call that a request of a server belongs to. A server that runs calls of several agents does not say whose it is:
 * then nobody is asked. Throws a `Refusal` then, and when no call runs.
 */
export function requireCaller({
  server,
  method,
  calls,
}: Pick<ServerRequest, 'server' | 'method' | 'calls'>): McpCaller {
  const [caller] = calls
  if (!caller) throw new Refusal('forbidden', `${method}: no call of ${server.name} runs that it could belong to`)
  if (calls.some(({ agentId, client }) => agentId !== caller.agentId || client !== caller.client))
    throw new Refusal('forbidden', `${method}: calls of several agents run on ${server.name}, so it has no owner`)
  return caller
}

/** Asks the program at the other end instead, where it can do that itself; `undefined` where it cannot. */
export function passOn(
  { client }: McpCaller,
  { method, params, signal }: Pick<ServerRequest, 'method' | 'params' | 'signal'>,
  ability: string,
): Promise<McpObject> | undefined {
  if (client?.abilities[ability] === undefined) return undefined
  return client.request(method, params, signal) as Promise<McpObject>
}
