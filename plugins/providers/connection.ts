import { Refusal } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { ProviderClient } from 'svc/providers'
import type { Section } from './config.ts'
import type { Key, Keys } from './keys.ts'
import type { DriverEntry, DriverRegistry } from './registry.ts'

const GENERIC = 'openai-compatible'

/** What is asked for: a provider by name and what a manifest overrides of it. */
export interface Choice { readonly provider: string; readonly baseUrl?: string | undefined; readonly apiKeyEnv?: string | undefined }
/** A provider that can be called: its driver, where it is and its key at this moment. */
export interface Connection {
  readonly entry: DriverEntry
  readonly client: ProviderClient
  readonly baseUrl: string
  readonly key: Key | undefined
  /** The variable whose key is not sent, because the address is not the provider's own. */
  readonly withheld: string | undefined
}

/** Joins drivers, sections, stored addresses and keys to providers that can be called. */
export class Connections {
  readonly #registry: DriverRegistry
  readonly #sections: Readonly<Record<string, Section>>
  readonly #keys: Keys
  readonly #addresses: { get(provider: string): string | undefined }
  readonly #fetch: Fetch

  constructor(parts: { registry: DriverRegistry; sections: Readonly<Record<string, Section>>; keys: Keys; addresses: { get(provider: string): string | undefined }; fetch: Fetch }) {
    this.#registry = parts.registry
    this.#sections = parts.sections
    this.#keys = parts.keys
    this.#addresses = parts.addresses
    this.#fetch = parts.fetch
  }

  section(name: string): Section | undefined { return this.#sections[name] }
  /** Names of everything that can be asked for: loaded drivers and sections that use one under another name. */
  names(): readonly string[] {
    const names = new Set(this.#registry.list().map(({ driver }) => driver.name).filter((name) => name !== GENERIC || this.baseUrl(name) !== undefined))
    for (const [name, section] of Object.entries(this.#sections)) if (this.#registry.find(section.driver)) names.add(name)
    return [...names]
  }
  driver(name: string, overridden = false): DriverEntry | undefined {
    const section = this.#sections[name]
    return this.#registry.find(name) ?? (section ? this.#registry.find(section.driver) : overridden ? this.#registry.find(GENERIC) : undefined)
  }
  /** Where requests for a provider go when the manifest says nothing. */
  baseUrl(name: string): string | undefined {
    return this.#addresses.get(name) ?? this.#sections[name]?.base_url ?? this.driver(name)?.driver.baseUrl
  }

  /** Throws `service_unavailable` with what to do when it cannot be called. */
  async open(choice: Choice): Promise<Connection> {
    const { provider } = choice
    const entry = this.driver(provider, choice.baseUrl !== undefined)
    if (!entry?.open) throw new Refusal('service_unavailable', `There is no provider "${provider}". There are: ${this.names().toSorted().join(', ') || 'none'}. `
      + `Any OpenAI-compatible service can be added with [providers.${provider}] base_url.`)
    const { driver } = entry
    const baseUrl = choice.baseUrl ?? this.baseUrl(provider) ?? ''
    if (baseUrl === '' && driver.name === GENERIC) throw new Refusal('service_unavailable', `Provider ${provider} has no address: set [providers.${provider}] base_url.`)
    const found = await this.#keys.find(provider, driver.envVar, choice.apiKeyEnv)
    const own = this.#mayReceive(found, provider, driver.baseUrl, baseUrl, choice.baseUrl !== undefined)
    const key = own ? found : undefined
    const withheld = own ? undefined : found?.variable ?? `[providers.${provider}]`
    if (driver.envVar !== undefined && found === undefined && sameOrigin(baseUrl, driver.baseUrl)) {
      throw new Refusal('service_unavailable', `Provider ${provider} has no key: set ${choice.apiKeyEnv ?? driver.envVar}, or [providers.${provider}] api_key, or POST it to /api/providers/${provider}/key.`)
    }
    const client = entry.client(`${provider} ${baseUrl} ${choice.apiKeyEnv ?? ''}`, () => ({
      name: provider, config: {}, baseUrl, fetch: this.#fetch,
      apiKey: async () => {
        const now = await this.#keys.find(provider, driver.envVar, choice.apiKeyEnv)
        return this.#mayReceive(now, provider, driver.baseUrl, baseUrl, choice.baseUrl !== undefined) ? now?.value : undefined
      },
    }))
    return { entry, client, baseUrl, key, withheld }
  }

  /**
   * Whether a key may go to an address. One from the environment belongs to the provider's own origin, one from the section or the
   * vault also to the origin the section or the operator gave; any other origin has to be named in `key_origins`. Without that a
   * manifest, which may come from elsewhere, could collect keys with an address of its own.
   */
  #mayReceive(key: Key | undefined, provider: string, home: string | undefined, baseUrl: string, fromManifest: boolean): boolean {
    if (key === undefined || sameOrigin(baseUrl, home)) return true
    if (this.#sections[provider]?.key_origins.some((origin) => sameOrigin(baseUrl, origin))) return true
    if (key.source === 'environment') return false
    return !fromManifest || sameOrigin(baseUrl, this.baseUrl(provider))
  }
}

function sameOrigin(one: string, other: string | undefined): boolean {
  return other !== undefined && URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin
}
