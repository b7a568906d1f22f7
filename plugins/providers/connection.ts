import * as v from 'valibot'
import { findNearest, suggest } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { DeviceSignIn, ProviderClient, ProviderDriver } from 'svc/providers'
import type { Section } from './config.ts'
import { circuitName } from './breaker.ts'
import { variablesOf } from './keys.ts'
import type { Key, Keys } from './keys.ts'
import type { DriverEntry, DriverRegistry } from './registry.ts'

const GENERIC = 'openai-compatible'
const MAX_ORIGINS = 500

/** A provider by name, with what a manifest overrides. */
export interface Choice {
  readonly provider: string
  readonly baseUrl?: string | undefined
  readonly apiKeyEnv?: string | undefined
}
/** A provider that can be called: its driver, where it is and its key at this moment. */
export interface Connection {
  readonly entry: DriverEntry
  readonly client: ProviderClient
  readonly baseUrl: string
  readonly key: Key | undefined
  /** The variable whose key is not sent, because the address is not the provider's own. */
  readonly withheld: string | undefined
  /** Of the breaker: the provider, where it is and this key. */
  readonly circuit: string
  /** Of all its keys, this one among them. */
  readonly circuits: readonly string[]
  /** All keys are suspended; milliseconds until this one may be used. */
  readonly waitMs: number
}

/** Picks one of several keys, each named by its circuit; `waitMs` until it may be used. */
export type ChooseKey = (circuits: readonly string[]) => { readonly index: number; readonly waitMs: number }

/** Joins drivers, sections, stored addresses and keys to providers that can be called. */
export class Connections {
  readonly #registry: DriverRegistry
  readonly #sections: Readonly<Record<string, Section>>
  readonly #keys: Keys
  readonly #addresses: { get(provider: string): string | undefined }
  readonly #fetch: Fetch
  /** The same few addresses are compared for every call, and parsing them is most of the work. */
  readonly #origins = new Map<string, string>()

  constructor(parts: {
    registry: DriverRegistry
    sections: Readonly<Record<string, Section>>
    keys: Keys
    addresses: { get(provider: string): string | undefined }
    fetch: Fetch
  }) {
    this.#registry = parts.registry
    this.#sections = parts.sections
    this.#keys = parts.keys
    this.#addresses = parts.addresses
    this.#fetch = parts.fetch
  }

  section(name: string): Section | undefined {
    return this.#sections[name]
  }
  /** All names that can be used: loaded drivers, and sections that use one under another name. */
  names(): readonly string[] {
    const names = new Set(
      this.#registry
        .list()
        .map(({ driver }) => driver.name)
        .filter((name) => name !== GENERIC || this.baseUrl(name) !== undefined),
    )
    for (const [name, section] of Object.entries(this.#sections))
      if (this.#registry.find(section.driver)) names.add(name)
    return [...names]
  }
  driver(name: string, overridden = false): DriverEntry | undefined {
    const section = this.#sections[name]
    return (
      this.#registry.find(name) ??
      (section ? this.#registry.find(section.driver) : overridden ? this.#registry.find(GENERIC) : undefined)
    )
  }
  /** The name the catalog has for a provider: a section that uses a vendor's driver is that vendor. */
  catalogName(name: string): string {
    const driver = this.driver(name)?.driver.name
    return driver === undefined || driver === GENERIC ? name : driver
  }
  /** The address of a provider when the manifest has none. */
  baseUrl(name: string): string | undefined {
    return this.#addresses.get(name) ?? this.#own(name)
  }

  /** The address the operator's configuration gives it, or else the vendor's. */
  #own(name: string): string | undefined {
    const driver = this.driver(name)?.driver
    const variable = driver?.addressVar === undefined ? undefined : this.#keys.variable(driver.addressVar)
    return this.#sections[name]?.base_url ?? this.#made(name, driver) ?? variable ?? driver?.baseUrl
  }
  /** The address that the driver makes of the fields of the section, such as that of a region. */
  #made(name: string, driver: ProviderDriver | undefined): string | undefined {
    const options = driver?.address ? v.safeParse(driver.config, this.#options(name, driver)) : undefined
    // A wrong section is reported when the provider is called, not in a list of all providers.
    return options?.success ? driver?.address?.(options.output) : undefined
  }
  /** What is missing on this machine for a driver that runs a program; `undefined` for a driver that runs none. */
  program(name: string): { readonly lacks: string | undefined } | undefined {
    const driver = this.driver(name)?.driver
    if (!driver?.missingRequirement) return undefined
    const options = v.safeParse(driver.config, this.#options(name, driver))
    return { lacks: options.success ? driver.missingRequirement(options.output) : undefined }
  }
  /** The provider's own address. Where each customer of a vendor has one, it is the configured address. */
  #home(name: string): string | undefined {
    const driver = this.driver(name, true)?.driver
    return (
      driver?.baseUrl ?? this.#made(name, driver) ?? (driver?.addressVar === undefined ? undefined : this.#own(name))
    )
  }

  /** Where a person signs in to a provider that is signed in to; `undefined` for one that is not. */
  signIn(name: string): DeviceSignIn | 'unknown' | undefined {
    const driver = this.driver(name)?.driver
    return driver ? driver.signIn?.(this.#config(name, driver)) : 'unknown'
  }

  /**
   * Throws `service_unavailable` with what to do when it cannot be called. `choose` picks among several keys, each
   * named by its circuit; without it the first one is used.
   */
  async open(choice: Choice, choose?: ChooseKey): Promise<Connection> {
    const { provider, apiKeyEnv } = choice
    const { entry, baseUrl, home, keys } = await this.#locate(choice)
    const { driver } = entry
    // All of them come from one place, so the check of the first covers all.
    const [firstKey] = keys
    const maySend = this.#mayReceive(firstKey, provider, home, baseUrl)
    const isChoice = maySend && keys.length > 1 && choose !== undefined
    const names = isChoice ? keys.map(({ value }) => circuitName(provider, baseUrl, value)) : []
    const { index, waitMs } = isChoice ? choose(names) : { index: 0, waitMs: 0 }
    const key = maySend ? keys[index] : undefined
    const circuit = names[index] ?? circuitName(provider, baseUrl, key?.value)
    const clientName = `${isChoice ? circuit : `${provider} ${baseUrl}`} ${apiKeyEnv ?? ''}`
    const client = entry.client(clientName, () => ({
      name: provider,
      config: this.#config(provider, driver),
      baseUrl,
      fetch: this.#fetch,
      apiKey: async () => {
        const now = await this.#keys.find(provider, variablesOf(driver), apiKeyEnv)
        if (!this.#mayReceive(now[0], provider, home, baseUrl)) return undefined
        return (isChoice ? now.find(({ value }) => circuitName(provider, baseUrl, value) === circuit) : now[0])?.value
      },
    }))
    return {
      entry,
      client,
      baseUrl,
      key,
      withheld: maySend ? undefined : (firstKey?.variable ?? `[providers.${provider}]`),
      circuit,
      circuits: isChoice ? names : [circuit],
      waitMs,
    }
  }

  /** The driver of a provider that can be called. Throws what `open` would throw. */
  async requireDriver(choice: Choice): Promise<DriverEntry> {
    return (await this.#locate(choice)).entry
  }

  async #locate(choice: Choice) {
    const { provider, apiKeyEnv } = choice
    const entry = await this.#requireEntry(choice)
    const { driver } = entry
    const baseUrl = this.#requireAddress(choice, driver)
    const lacking = driver.missingRequirement?.(this.#config(provider, driver))
    if (lacking !== undefined) throw new Refusal('service_unavailable', lacking)
    const home = this.#home(provider)
    const keys = await this.#keys.find(provider, variablesOf(driver), apiKeyEnv)
    if (driver.envVar !== undefined && keys.length === 0 && this.#sameOrigin(baseUrl, home))
      throw missingKey(provider, apiKeyEnv ?? this.#sections[provider]?.api_key_env ?? driver.envVar)
    return { entry, baseUrl, home, keys }
  }

  /** The driver of a provider. One that is being reloaded is waited for. */
  async #requireEntry({ provider, baseUrl }: Choice): Promise<DriverEntry> {
    const find = () => this.driver(provider, baseUrl !== undefined)
    let entry = find()
    if (!entry) {
      await this.#registry.returned(provider)
      entry = find()
    }
    if (!entry) {
      await this.#registry.returned(this.#sections[provider]?.driver ?? GENERIC)
      entry = find()
    }
    if (entry?.open) return entry
    const names = this.names().toSorted().join(', ') || 'none'
    const nearest = suggest(findNearest(provider, this.names())) || '.'
    throw new Refusal(
      'service_unavailable',
      `There is no provider "${provider}"${nearest} There are: ${names}. ` +
        `Any OpenAI-compatible service can be added with [providers.${provider}] base_url.`,
    )
  }

  #requireAddress({ provider, ...choice }: Choice, driver: ProviderDriver): string {
    const baseUrl = choice.baseUrl ?? this.baseUrl(provider) ?? ''
    if (baseUrl !== '' || (driver.name !== GENERIC && driver.envVar === undefined)) return baseUrl
    // A wrong section is reported before the address that it lacks.
    this.#config(provider, driver)
    const variable = driver.addressVar ?? Object.values(driver.configVars ?? {}).flat()[0]
    const ways = [...(variable === undefined ? [] : [variable]), `[providers.${provider}] base_url`]
    throw new Refusal('service_unavailable', `Provider ${provider} has no address: set ${ways.join(' or ')}.`)
  }

  /** The driver's fields of the section, checked. Throws `service_unavailable` with the field that is wrong. */
  #config(provider: string, driver: ProviderDriver): Record<string, unknown> {
    const read = v.safeParse(driver.config, this.#options(provider, driver))
    if (read.success) return read.output
    const [issue] = read.issues
    throw new Refusal('service_unavailable', `[providers.${provider}] ${v.getDotPath(issue) ?? ''}: ${issue.message}`)
  }

  /** The section, with missing fields filled from the driver's variables. */
  #options(provider: string, { configVars }: ProviderDriver): Readonly<Record<string, unknown>> {
    const section: Record<string, unknown> = this.#sections[provider] ?? {}
    if (!configVars) return section
    const filled = Object.entries(configVars).flatMap(([field, variables]) => {
      if (section[field] !== undefined) return []
      const value = variables.map((name) => this.#keys.variable(name)).find((held) => held !== undefined)
      return value ? [[field, value] as const] : []
    })
    return { ...section, ...Object.fromEntries(filled) }
  }

  /**
   * Whether a key may go to an address: to the provider's own origin, to those named in `key_origins`, and to the
   * address beside it in its section or in force when it was stored. Without this check an address in a manifest or
   * over the API could collect keys.
   */
  #mayReceive(key: Key | undefined, provider: string, home: string | undefined, baseUrl: string): boolean {
    const section = this.#sections[provider]
    if (
      key === undefined ||
      this.#sameOrigin(baseUrl, home) ||
      section?.key_origins.some((origin) => this.#sameOrigin(baseUrl, origin))
    )
      return true
    return (
      key.source !== 'environment' &&
      this.#sameOrigin(baseUrl, key.source === 'config' ? section?.base_url : key.address)
    )
  }

  #sameOrigin(one: string, other: string | undefined): boolean {
    if (other === undefined) return false
    const origin = this.#originOf(one)
    return origin !== undefined && origin === this.#originOf(other)
  }

  #originOf(url: string): string | undefined {
    const there = this.#origins.get(url)
    if (there !== undefined) return there
    const origin = URL.parse(url)?.origin
    if (origin === undefined) return undefined
    if (this.#origins.size >= MAX_ORIGINS) this.#origins.clear()
    this.#origins.set(url, origin)
    return origin
  }
}

function missingKey(provider: string, variable: string): Refusal {
  return new Refusal(
    'service_unavailable',
    `Provider ${provider} has no key: set ${variable}, or [providers.${provider}] api_key, or store one with ` +
      `${commandLine(`providers set-key ${provider}`)}.`,
  )
}
