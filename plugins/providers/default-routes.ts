import { defineRoute, Refusal, SerialQueue, UpstreamFailure } from 'svc/sdk'
import type { Configuration } from 'svc/internal'
import type { AnyRoute } from 'svc/sdk'
import type * as v from 'valibot'
import { advise } from './advice.ts'
import type { Connection, Connections } from './connection.ts'
import type { Inference, ProviderState } from './contract.ts'
import { checkProbe } from './driver-events.ts'
import { withoutKey } from './keys.ts'
import { DefaultBody, DefaultProvider, Tested } from './schema.ts'

const TEST_MS = 30_000

export interface DefaultDeps {
  readonly inference: Inference
  readonly connections: Connections
  readonly configuration: Configuration
  readonly known: (name: string) => ProviderState
  /** Writes an entry of the audit log before a file is changed. */
  readonly announce: (details: string) => Promise<void>
  /** Writes an entry of the audit log for a call that may send a key out. */
  readonly announceCall: (details: string) => Promise<void>
}

/**
 * Calls the provider once. One that fails is an answer, so that the reason can be shown. `announceCall` writes an
 * entry of the audit log before anything is sent.
 */
export async function tryProvider(
  connections: Connections,
  { name, authStatus, envVar, lacks }: ProviderState,
  signal: AbortSignal,
  announceCall: (details: string) => Promise<void>,
): Promise<v.InferOutput<typeof Tested>> {
  if (lacks !== undefined) throw new Refusal('invalid_request', lacks)
  if (authStatus === 'missing')
    throw new Refusal(
      'invalid_request',
      `Provider ${name} has no key: set ${envVar ?? 'one'} or POST it to /api/providers/${name}/key`,
    )
  const started = performance.now()
  let connection: Connection | undefined
  try {
    connection = await connections.open({ provider: name })
    const { entry, client, baseUrl, key } = connection
    const origin = URL.parse(baseUrl)?.origin
    const target = origin === undefined ? name : `${name} at ${origin}`
    await announceCall(`test of provider ${target}, ${key === undefined ? 'without a key' : 'with its key'}`)
    const { model } = checkProbe(name, await entry.use(TEST_MS, (inner) => client.probe(inner), signal))
    return { status: 'ok', provider: name, latency_ms: Math.round(performance.now() - started), model_tested: model }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof UpstreamFailure) && !(error instanceof Refusal)) throw error
    const advised = connection ? advise(error, name, connection, { turns: [] }) : error
    return {
      status: 'error',
      provider: name,
      latency_ms: Math.round(performance.now() - started),
      error: withoutKey(advised instanceof Error ? advised.message : error.message, connection?.key),
    }
  }
}

/** The provider that agents get which name none (Interface 4.5). */
export function defaultRoutes({
  inference,
  connections,
  configuration,
  known,
  announce,
  announceCall,
}: DefaultDeps): readonly AnyRoute[] {
  async function current() {
    const { provider, model } = await inference.defaultModel()
    // What is configured is told also when there is no such provider (any more).
    const {
      authStatus = 'missing',
      envVar,
      baseUrl,
    } = inference.providers().find(({ name }) => name === provider) ?? {}
    return {
      provider,
      model,
      auth_status: authStatus,
      problem: (await inference.defaultProblem()) ?? null,
      ...(envVar !== undefined && { api_key_env: envVar }),
      ...(baseUrl !== undefined && { base_url: baseUrl }),
    }
  }

  /** Provider and model are two settings: no other change may come between them. */
  const changes = new SerialQueue()

  const read = defineRoute({
    method: 'GET',
    path: '/api/config/provider',
    summary: 'Read the default provider and model',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: DefaultProvider,
    handle: () => current(),
  })

  const set = defineRoute({
    method: 'PUT',
    path: '/api/config/provider',
    summary: 'Choose the default provider and model',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'Written into config.toml; it holds at once, for agents that name none. Without `model` the one the provider suggests.',
    body: DefaultBody,
    // What is sent is set, also when it is what the daemon chose by itself.
    async shown() {
      const { provider: _provider, model: _model, ...fixed } = await current()
      return { fields: fixed }
    },
    returns: DefaultProvider,
    errors: ['provider_not_found', 'conflict'],
    example: { body: { provider: 'openai', model: 'gpt-5-mini' } },
    handle: ({ body }) =>
      changes.run(async () => {
        const provider = body.provider ?? (await inference.defaultModel()).provider
        const model = body.model ?? (body.provider === undefined ? undefined : known(provider).defaultModel)
        known(provider)
        if (body.provider === undefined && model === undefined)
          throw new Refusal('invalid_request', 'provider: is missing; give it, or `model`, or both')
        const before = await inference.defaultModel()
        await announce(
          `default provider set to ${provider}${model === undefined ? '' : `, model ${model}`}, from ${before.provider}/${before.model}`,
        )
        await configuration.set('default_provider', provider)
        if (model !== undefined) await configuration.set('default_model', model)
        return current()
      }),
  })

  const test = defineRoute({
    method: 'POST',
    path: '/api/config/provider/test',
    summary: 'Call the default provider once to prove its address and key',
    auth: 'bearer',
    effect: 'conversation',
    cost: 20,
    returns: Tested,
    errors: ['invalid_request'],
    async handle({ signal }) {
      return tryProvider(connections, known((await inference.defaultModel()).provider), signal, announceCall)
    },
  })

  return [read, set, test]
}
