import { defineRoute, rawBody } from 'svc/sdk'
import type { AnyRoute, RequestFacts } from 'svc/sdk'
import type { Runtime } from './runtime.ts'
import { AgentParams, Card, CardList, RpcAnswer, RpcCall } from './schema.ts'
import type { Settings } from '../config.ts'
import { taskRoutes } from './task-routes.ts'

export interface RouteDeps {
  readonly runtime: () => Promise<Runtime>
  readonly settings: Settings
  /** `http` or `https`, as the daemon is reached when nothing says otherwise. */
  readonly scheme: () => string
}

const RPC_DESCRIPTION =
  'JSON-RPC 2.0 of the Agent2Agent protocol, versions 1.0 and 0.3: the name of the method tells them apart, and the ' +
  'header `A2A-Version`, when it is there, has to agree. Errors are those of the protocol, with status 200. ' +
  'Methods that stream answer with server-sent events.'
const auth = 'bearer' as const

export function serverRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [...cardRoutes(deps), ...rpcRoutes(deps), ...taskRoutes(deps)]
}

function cardRoutes(deps: RouteDeps): readonly AnyRoute[] {
  const { settings, runtime } = deps
  const card = {
    method: 'GET',
    auth: settings.public_cards ? 'public' : auth,
    effect: 'read',
    cost: 1,
    returns: Card,
    errors: ['agent_not_found'],
  } as const
  const unchanged = { 304: { description: 'It is what If-None-Match names' } }
  const shape = 'In the shape of protocol 0.3, or with `A2A-Version: 1.0` in that one.'
  return [
    defineRoute({
      ...card,
      path: '/.well-known/agent.json',
      summary: 'The agent card of this service',
      handle: async (input) => {
        const { toInterfaceCard } = await import('./cards.ts')
        return toInterfaceCard(await (await runtime()).cards.describe(baseOf(input, deps), undefined))
      },
    }),
    ...(['/.well-known/agent-card.json', '/a2a/.well-known/agent-card.json'] as const).map((path) =>
      defineRoute({
        ...card,
        path,
        summary: 'The agent card of this service, for clients of protocol 0.3 and 1.0',
        description: shape,
        answers: unchanged,
        handle: (input) => showCard(input, deps, undefined),
      }),
    ),
    ...(['agent-card.json', 'agent.json'] as const).map((file) =>
      defineRoute({
        ...card,
        path: `/a2a/agents/:name/.well-known/${file}`,
        summary: 'The agent card of one agent',
        description: shape,
        answers: unchanged,
        params: AgentParams,
        handle: (input) => showCard(input, deps, input.params.name),
      }),
    ),
    defineRoute({
      method: 'GET',
      path: '/a2a/agents',
      summary: 'The agent cards of all agents here',
      auth,
      effect: 'read',
      cost: 5,
      returns: CardList,
      async handle(input) {
        const { toInterfaceCard } = await import('./cards.ts')
        const agents = (await (await runtime()).cards.all(baseOf(input, deps))).map(toInterfaceCard)
        return { agents, total: agents.length }
      },
    }),
  ]
}

function rpcRoutes(deps: RouteDeps): readonly AnyRoute[] {
  const rpc = {
    method: 'POST',
    description: RPC_DESCRIPTION,
    auth,
    effect: 'conversation',
    cost: 30,
    body: rawBody(deps.settings.max_request_bytes, RpcCall),
    returns: RpcAnswer,
    streams: RpcAnswer,
  } as const
  return [
    ...(['/a2a', '/'] as const).map((path) =>
      defineRoute({
        ...rpc,
        path,
        summary: 'Speak A2A with this service',
        handle: (input) => answer(input, undefined),
      }),
    ),
    defineRoute({
      ...rpc,
      path: '/a2a/agents/:name',
      summary: 'Speak A2A with one agent',
      params: AgentParams,
      errors: ['agent_not_found'],
      handle: (input) => answer(input, input.params.name),
    }),
  ]
  async function answer(
    input: Facts & { readonly body: Uint8Array; readonly signal: AbortSignal },
    name: string | undefined,
  ) {
    const { body, principal, signal } = input
    const version = input.header('a2a-version')
    const type = input.header('content-type')
    return (await deps.runtime()).rpc({ body, type, name, base: baseOf(input, deps), version, principal, signal })
  }
}

type Facts = Pick<RequestFacts, 'header' | 'principal'>

async function showCard(input: Facts, deps: RouteDeps, name: string | undefined) {
  const { showCard: show } = await import('./card-reply.ts')
  return show(await (await deps.runtime()).cards.describe(baseOf(input, deps), name), input)
}

/** Where this daemon is reached, as the caller sees it. The Host header was checked before. */
function baseOf({ header }: Pick<Facts, 'header'>, { settings, scheme }: RouteDeps): string {
  if (settings.public_url !== undefined) return settings.public_url.replace(/\/+$/, '')
  return `${scheme()}://${header('host') ?? 'localhost'}`
}
