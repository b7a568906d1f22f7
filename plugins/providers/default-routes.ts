import { defineRoute, omitUndefined, Refusal, SerialQueue } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type * as v from 'valibot'
import type { Inference } from './contract.ts'
import { requireProvider } from './states.ts'
import type { ProviderRouteDeps } from './routes.ts'
import { DefaultBody, DefaultProvider, Tested } from './schema.ts'

/** The provider and model of agents that name none (Interface 4.5). */
export function defaultRoutes(deps: ProviderRouteDeps): readonly AnyRoute[] {
  return [readDefaultRoute(deps), setDefaultRoute(deps), testDefaultRoute(deps)]
}

function readDefaultRoute({ inference }: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/config/provider',
    summary: 'Read the default provider and model',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: DefaultProvider,
    handle: () => readDefault(inference),
  })
}

function setDefaultRoute(deps: ProviderRouteDeps): AnyRoute {
  // Provider and model are two settings: no other change may come between them.
  const changes = new SerialQueue()
  return defineRoute({
    method: 'PUT',
    path: '/api/config/provider',
    summary: 'Choose the default provider and model',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'Written into config.toml; it holds at once, for agents that name none. Without `model` the one the ' +
      'provider suggests.',
    body: DefaultBody,
    // A value that is sent is set, even when it equals what the daemon chose by itself.
    async shown() {
      const { provider: _provider, model: _model, ...fixed } = await readDefault(deps.inference)
      return { fields: fixed }
    },
    returns: DefaultProvider,
    errors: ['provider_not_found', 'conflict'],
    example: { body: { provider: 'openai', model: 'gpt-5-mini' } },
    handle: ({ body }) => changes.run(() => setDefault(deps, body)),
  })
}

function testDefaultRoute({ inference, connections, auditCall }: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/config/provider/test',
    summary: 'Call the default provider once to prove its address and key',
    auth: 'bearer',
    effect: 'conversation',
    cost: 20,
    returns: Tested,
    errors: ['invalid_request'],
    async handle({ signal }) {
      const { testProvider } = await import('./provider-test.ts')
      const { provider } = await inference.defaultModel()
      return testProvider(connections, requireProvider(inference, provider), signal, auditCall)
    },
  })
}

async function readDefault(inference: Inference) {
  const { provider, model } = await inference.defaultModel()
  // What is configured is shown even when no such provider exists (any more).
  const { authStatus = 'missing', envVar, baseUrl } = inference.providers().find(({ name }) => name === provider) ?? {}
  return {
    provider,
    model,
    auth_status: authStatus,
    problem: (await inference.defaultProblem()) ?? null,
    ...omitUndefined({ api_key_env: envVar, base_url: baseUrl }),
  }
}

async function setDefault(
  { inference, configuration, auditChange }: ProviderRouteDeps,
  body: v.InferOutput<typeof DefaultBody>,
) {
  const before = await inference.defaultModel()
  const provider = body.provider ?? before.provider
  const { defaultModel } = requireProvider(inference, provider)
  const model = body.model ?? (body.provider === undefined ? undefined : defaultModel)
  if (body.provider === undefined && model === undefined)
    throw new Refusal('invalid_request', 'provider: is missing; give it, or `model`, or both')
  const change = model === undefined ? provider : `${provider}, model ${model}`
  await auditChange(`default provider set to ${change}, from ${before.provider}/${before.model}`)
  await configuration.set('default_provider', provider)
  if (model !== undefined) await configuration.set('default_model', model)
  return readDefault(inference)
}
