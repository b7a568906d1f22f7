import * as v from 'valibot'
import type { Vault } from 'svc/sdk'
import type { ProviderDriver } from 'svc/providers'
import type { Section } from './config.ts'

/** A key and where it came from: what a key of the environment may be sent to is limited. */
export interface Key {
  readonly value: string
  readonly source: 'stored' | 'config' | 'environment'
  /** The variable it was in. */
  readonly variable?: string
  /** The address it was stored for. */
  readonly address?: string
}
export type Environment = Readonly<Record<string, string | undefined>>
/** The process environment: vendors' keys are where their own tools look for them. */
export const environment: Environment = process.env

/** The variables a driver's key may be in, in the order they are looked at. */
export const variablesOf = ({ envVar, otherEnvVars = [] }: Pick<ProviderDriver, 'envVar' | 'otherEnvVars'>): readonly string[] => (envVar === undefined ? [] : [envVar, ...otherEnvVars])

/** A stored key is bound to the address the provider had then: changing the address later must not carry the key away. */
const StoredKey = v.object({ key: v.string(), address: v.optional(v.string()) })

/** Finds keys: stored over the API first, then the configuration, then the environment. Never keeps one. */
export class Keys {
  readonly #vault: Vault
  readonly #environment: Environment
  readonly #sections: Readonly<Record<string, Section>>
  /** Names only. Spares a read of the vault for each call of a provider that has no stored key. */
  readonly #stored: Set<string>

  static async open(vault: Vault, environment: Environment, sections: Readonly<Record<string, Section>>): Promise<Keys> {
    return new Keys(vault, environment, sections, await vault.names())
  }
  private constructor(vault: Vault, environment: Environment, sections: Readonly<Record<string, Section>>, stored: readonly string[]) {
    this.#vault = vault
    this.#environment = environment
    this.#sections = sections
    this.#stored = new Set(stored)
  }

  /** `manifestVariable` overrides the driver's own `variables`, as a manifest may. */
  async find(provider: string, variables: readonly string[], manifestVariable?: string): Promise<Key | undefined> {
    if (manifestVariable !== undefined) {
      const value = this.#read(manifestVariable)
      if (value !== undefined) return { value, source: 'environment', variable: manifestVariable }
    }
    const stored = this.#stored.has(provider) ? await this.#vault.read(provider) : undefined
    if (stored !== undefined) {
      const { key, address } = v.parse(StoredKey, JSON.parse(stored))
      return { value: key, source: 'stored', ...(address !== undefined && { address }) }
    }
    const configured = this.#configured(provider)
    if (configured !== undefined) return { value: configured, source: 'config' }
    for (const variable of variables) {
      const value = this.#read(variable)
      if (value !== undefined) return { value, source: 'environment', variable }
    }
    return undefined
  }

  /** Where a key is, without reading it. */
  source(provider: string, variables: readonly string[]): Key['source'] | undefined {
    if (this.#stored.has(provider)) return 'stored'
    if (this.#configured(provider) !== undefined) return 'config'
    return variables.some((variable) => this.#read(variable) !== undefined) ? 'environment' : undefined
  }

  /** What a variable holds that is no key, such as an address. */
  variable(name: string): string | undefined { return this.#read(name) }

  /** Durable before it settles. `address` is where the provider's requests go now. */
  async store(provider: string, key: string, address: string | undefined): Promise<void> {
    await this.#vault.write(provider, JSON.stringify({ key, address }))
    this.#stored.add(provider)
  }
  /** Whether there was one. */
  async remove(provider: string): Promise<boolean> {
    this.#stored.delete(provider)
    return this.#vault.remove(provider)
  }

  /** The section's own key, or that of the variable the section names. */
  #configured(provider: string): string | undefined {
    const section = this.#sections[provider]
    return section?.api_key ?? (section?.api_key_env === undefined ? undefined : this.#read(section.api_key_env))
  }
  #read(variable: string): string | undefined {
    return this.#environment[variable]?.trim() || undefined
  }
}
