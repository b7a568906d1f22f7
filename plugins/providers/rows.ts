import { omitUndefined, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { ProviderState } from './contract.ts'
import type { ProviderRouteDeps } from './routes.ts'
import type { ProviderRow } from './schema.ts'

const REACH_MS = 3000

/**
 * The models of a provider that are known without calling it: those installed in Ollama, its default, those with a
 * configured price, and those of the catalog.
 */
export async function modelsOf(
  { ollama, catalog, connections }: ProviderRouteDeps,
  { name, defaultModel }: ProviderState,
): Promise<readonly string[]> {
  const installed = name === 'ollama' ? (await ollama.detected()).models : []
  const known = catalog()
  await known?.ready()
  const ids = known?.list(connections.catalogName(name)).map(({ id }) => id) ?? []
  return [
    ...new Set([
      ...installed,
      ...(defaultModel === 'default' || installed.length > 0 ? [] : [defaultModel]),
      ...Object.keys(connections.section(name)?.prices ?? {}),
      ...ids,
    ]),
  ]
}

export async function toRow(deps: ProviderRouteDeps, state: ProviderState): Promise<ProviderRow> {
  return {
    name: state.name,
    display_name: state.title,
    auth_status: state.authStatus,
    default_model: state.defaultModel,
    ...omitUndefined({ error: state.lacks, env_var: state.envVar }),
    base_url: state.baseUrl ?? '',
    model_count: (await modelsOf(deps, state)).length,
  }
}

/** Whether anything answers at the address. Throws `invalid_request` for an address that may not be called. */
export async function isReachable(fetch: Fetch, url: string, signal: AbortSignal): Promise<boolean> {
  const limits = { headersTimeoutMs: REACH_MS, totalTimeoutMs: REACH_MS, maxBytes: 65_536 }
  try {
    const response = await fetch(url, { signal, ...limits })
    for await (const _ of response.chunks()) break
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw new Refusal('invalid_request', error.message)
    if (error instanceof UpstreamFailure) return false
    throw error
  }
}
