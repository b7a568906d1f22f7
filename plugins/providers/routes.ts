import { defineRoute, Refusal } from 'svc/sdk'
import type { Configuration } from 'svc/internal'
import type { AnyRoute, Fetch, Statement } from 'svc/sdk'
import type { Catalog } from '../catalog/contract.ts'
import type { Addresses } from './addresses.ts'
import type { Connections } from './connection.ts'
import type { Inference } from './contract.ts'
import { defaultRoutes } from './default-routes.ts'
import { detectRoutes } from './detect-routes.ts'
import { requireProvider } from './states.ts'
import {
  KeyBody,
  KeyRemoved,
  KeySaved,
  ProviderDetail,
  ProviderList,
  ProviderParams,
  Tested,
  UrlBody,
  UrlSaved,
} from './schema.ts'
import { signInRoutes } from './sign-in-routes.ts'
import type { Keys } from './keys.ts'
import type { Ollama } from './ollama.ts'

export interface ProviderRouteDeps {
  readonly inference: Inference
  readonly connections: Connections
  readonly keys: Keys
  readonly ollama: Ollama
  readonly catalog: () => Catalog | undefined
  readonly fetch: Fetch
  readonly addresses: Addresses
  readonly configuration: Configuration
  /** How long a local server may take to answer its detection. */
  readonly detectMs: number
  /** Writes the audit entry of a change to the configuration file, before the change. */
  readonly auditChange: (details: string) => Promise<void>
  /** Writes the audit entry of a call that may send a key to the provider, before the call. */
  readonly auditCall: (details: string) => Promise<void>
  /** Makes a change in the database; `work` commits the given statements, the audit entry, in the same transaction. */
  readonly change: (
    provider: string,
    details: string,
    work: (entries: readonly Statement[]) => Promise<unknown>,
  ) => Promise<void>
}

/** Providers and their keys and addresses (Interface 4.6). */
export function providerRoutes(deps: ProviderRouteDeps): readonly AnyRoute[] {
  return [
    listRoute(deps),
    ...detectRoutes(deps),
    ...signInRoutes(deps),
    ...defaultRoutes(deps),
    readRoute(deps),
    testRoute(deps),
    setKeyRoute(deps),
    removeKeyRoute(deps),
    setUrlRoute(deps),
  ]
}

function listRoute(deps: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/providers',
    summary: 'List the providers and whether they can be used',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: ProviderList,
    async handle() {
      const { toRow } = await import('./rows.ts')
      const providers = await Promise.all(deps.inference.providers().map((state) => toRow(deps, state)))
      return { providers, total: providers.length }
    },
  })
}

function readRoute(deps: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/providers/:name',
    summary: 'Read one provider',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ProviderParams,
    returns: ProviderDetail,
    errors: ['provider_not_found'],
    async handle({ params }) {
      const state = requireProvider(deps.inference, params.name)
      const { modelsOf, toRow } = await import('./rows.ts')
      return { ...(await toRow(deps, state)), models: [...(await modelsOf(deps, state))] }
    },
  })
}

function testRoute({ inference, connections, auditCall }: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/providers/:name/test',
    summary: 'Call a provider once to prove its address and key',
    auth: 'bearer',
    effect: 'conversation',
    cost: 20,
    description: 'A provider that fails is an answer of 200 with `status` error, so that the reason can be shown.',
    params: ProviderParams,
    returns: Tested,
    errors: ['provider_not_found', 'invalid_request'],
    async handle({ params, signal }) {
      const { testProvider } = await import('./provider-test.ts')
      return testProvider(connections, requireProvider(inference, params.name), signal, auditCall)
    },
  })
}

function setKeyRoute({ inference, connections, keys, change }: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/providers/:name/key',
    summary: "Store a provider's key, encrypted; it takes effect at once",
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'It replaces the stored keys, and precedes keys of the configuration and the environment. With `add` it ' +
      'joins them; calls use several keys in turn, and a refused one is suspended for a while.',
    params: ProviderParams,
    body: KeyBody,
    returns: KeySaved,
    errors: ['provider_not_found', 'invalid_request'],
    example: { body: { api_key: 'sk-example' } },
    async handle({ params: { name }, body }) {
      requireProvider(inference, name)
      const given = body.api_keys ?? [body.api_key ?? body.key ?? '']
      const { add = false } = body
      await change(
        name,
        `${given.length > 1 ? `${given.length} keys` : 'key'} of provider ${name} ${add ? 'added' : 'stored'}`,
        (entries) => keys.store(name, given, connections.baseUrl(name), { add, entries }),
      )
      return { status: 'configured' as const, provider: name }
    },
  })
}

function removeKeyRoute({ inference, keys, change }: ProviderRouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/providers/:name/key',
    summary: "Remove a provider's stored key",
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'Keys of the configuration and the environment stay: `auth_status` shows whether one of them is used from ' +
      'now on.',
    params: ProviderParams,
    returns: KeyRemoved,
    errors: ['provider_not_found', 'invalid_request'],
    async handle({ params: { name } }) {
      if (requireProvider(inference, name).authStatus === 'no_key_needed')
        throw new Refusal('invalid_request', `Provider ${name} needs no key`)
      await change(name, `key of provider ${name} removed`, (entries) => keys.remove(name, entries))
      return { status: 'removed' as const, provider: name, auth_status: requireProvider(inference, name).authStatus }
    },
  })
}

function setUrlRoute(deps: ProviderRouteDeps): AnyRoute {
  const { inference, connections, ollama, addresses, fetch, change } = deps
  return defineRoute({
    method: 'PUT',
    path: '/api/providers/:name/url',
    summary: "Send a provider's requests to another address",
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'No key that is there already is sent to another origin, unless `key_origins` of the provider names it: ' +
      'store the key again afterwards.',
    params: ProviderParams,
    body: UrlBody,
    returns: UrlSaved,
    errors: ['provider_not_found', 'invalid_request'],
    example: { body: { url: 'http://127.0.0.1:8080/v1' } },
    async handle({ params: { name }, body, signal }) {
      requireProvider(inference, name)
      const url = body.url ?? body.base_url ?? ''
      const started = performance.now()
      const { isReachable } = await import('./rows.ts')
      const reachable = await isReachable(fetch, url, signal)
      await change(
        name,
        `address of provider ${name} set to ${new URL(url).origin}, from ` +
          `${URL.parse(connections.baseUrl(name) ?? '')?.origin ?? 'none'}`,
        (entries) => addresses.set(name, url, entries),
      )
      if (name === 'ollama') ollama.forget()
      return {
        status: 'saved' as const,
        provider: name,
        base_url: url,
        reachable,
        ...(reachable && { latency_ms: Math.round(performance.now() - started) }),
      }
    },
  })
}
