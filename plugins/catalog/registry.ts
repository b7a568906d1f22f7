import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { readJson, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Entry } from './data.ts'
import type { CatalogStore, RegistryState } from './store.ts'

export interface RegistryDeps {
  readonly store: CatalogStore
  readonly audit: Audit
  readonly fetch: Fetch
  readonly url: string
  readonly limits: { readonly timeoutMs: number; readonly maxBytes: number; readonly maxModels: number }
  readonly now: () => Date
  /** An update that several wait for does not end with the first one that leaves. */
  readonly signal: AbortSignal
  /** After the new one is on disk. */
  readonly changed: () => Promise<void>
}
interface Fetched {
  readonly version: string
  readonly entries: readonly Entry[]
}
export interface Updated {
  readonly state: RegistryState
  readonly changed: boolean
}
const SYSTEM = 'catalog registry'

/** The remote registry of models, in the format of models.dev. An update is applied as a whole or not at all. */
export class RemoteRegistry {
  readonly #deps: RegistryDeps
  #running: Promise<Updated> | undefined
  #failure: { readonly at: string; readonly message: string } | undefined

  constructor(deps: RegistryDeps) {
    this.#deps = deps
  }

  get url(): string {
    return this.#deps.url
  }
  /** Why the newest try failed; `undefined` when it did not. */
  get failure(): { readonly at: string; readonly message: string } | undefined {
    return this.#failure
  }
  state(): Promise<RegistryState | undefined> {
    return this.#deps.store.registryState()
  }

  /** Fetches and stores. Throws `UpstreamFailure` and changes nothing on failure. Concurrent calls share one fetch. */
  update(): Promise<Updated> {
    return (this.#running ??= this.#update().finally(() => {
      this.#running = undefined
    }))
  }
  /** Whether the registry has something else than what is stored. Stores nothing. */
  async differs(signal: AbortSignal): Promise<boolean> {
    const [{ version }, state] = await Promise.all([this.#fetch(signal), this.state()])
    return version !== state?.version
  }

  async #update(): Promise<Updated> {
    const { store, audit, url, now, signal } = this.#deps
    try {
      const [{ version, entries }, before] = await Promise.all([this.#fetch(signal), this.state()])
      const state = { url, version, fetched_at: now().toISOString(), models: entries.length }
      await store.commit(
        store.putRegistry(state, entries),
        audit.entry({
          event: 'config_change',
          details: `model catalog updated from ${new URL(url).origin}: ${entries.length} models, version ${version}`,
        }),
      )
      this.#failure = undefined
      await this.#deps.changed()
      return { state, changed: before?.version !== version }
    } catch (error) {
      signal.throwIfAborted()
      const failure = toFailure(error, url)
      this.#failure = { at: now().toISOString(), message: failure.message }
      throw failure
    }
  }

  async #fetch(signal: AbortSignal): Promise<Fetched> {
    const { fetch, url, limits } = this.#deps
    const response = await fetch(url, {
      signal,
      headers: { accept: 'application/json' },
      headersTimeoutMs: limits.timeoutMs,
      totalTimeoutMs: limits.timeoutMs,
      maxBytes: limits.maxBytes,
    })
    const bytes = await response.bytes()
    if (!response.ok) throw malformed(`answered ${response.status}`, response.status >= 500 ? 'later' : 'never')
    // Only an update needs to know the format and the vendors' names in it.
    const [{ toEntries }, { readRegistry }] = await Promise.all([import('./offer.ts'), import('./registry-format.ts')])
    let entries: readonly Entry[]
    try {
      entries = toEntries(readRegistry(readJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))))
    } catch (cause) {
      const issue = cause instanceof v.ValiError ? cause.issues[0] : undefined
      const reason = issue ? `${v.getDotPath(issue) ?? 'it'}: ${issue.message}` : 'it is not JSON'
      throw malformed(`sent something that is no list of models: ${reason}`, 'never', cause)
    }
    if (entries.length === 0) throw malformed('sent a list without a model', 'never')
    if (entries.length > limits.maxModels)
      throw malformed(
        `sent ${entries.length} models, more than the limit of ${limits.maxModels} (max_registry_models)`,
        'never',
      )
    return { version: createHash('sha256').update(bytes).digest('hex').slice(0, 16), entries }
  }
}

const malformed = (what: string, retry: 'later' | 'never', cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(SYSTEM, what, { reason: 'malformed', retry, cause })

/** What went wrong and that nothing changed. An address that may not be called is the operator's to allow. */
function toFailure(error: unknown, url: string): UpstreamFailure {
  if (error instanceof Refusal)
    return new UpstreamFailure(
      SYSTEM,
      `The registry at ${url} cannot be called: ${error.message}. The catalog is unchanged.`,
      { reason: 'network', retry: 'never', cause: error },
    )
  if (!(error instanceof UpstreamFailure)) throw error
  const reason =
    error.reason === 'malformed' && error.system === SYSTEM ? error.message : `could not be read: ${error.message}`
  return new UpstreamFailure(SYSTEM, `The registry at ${url} ${reason.replace(/\.$/, '')}. The catalog is unchanged.`, {
    reason: error.reason,
    retry: error.retry,
    cause: error,
  })
}
