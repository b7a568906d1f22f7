import type { Vault } from 'svc/sdk'
import type { Section } from './config.ts'

/** A key and where it came from: what a key of the environment may be sent to is limited. */
export interface Key { readonly value: string; readonly source: 'stored' | 'config' | 'environment'; readonly variable: string | undefined }
export type Environment = Readonly<Record<string, string | undefined>>
/** The process environment: vendors' keys are where their own tools look for them. */
export const environment: Environment = process.env

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

  /** `variable` overrides the driver's own, as a manifest may. */
  async find(provider: string, variable: string | undefined, manifestVariable?: string): Promise<Key | undefined> {
    if (manifestVariable !== undefined) {
      const value = this.#read(manifestVariable)
      if (value !== undefined) return { value, source: 'environment', variable: manifestVariable }
    }
    const stored = this.#stored.has(provider) ? await this.#vault.read(provider) : undefined
    if (stored !== undefined) return { value: stored, source: 'stored', variable: undefined }
    const configured = this.#sections[provider]?.api_key
    if (configured !== undefined) return { value: configured, source: 'config', variable: undefined }
    const value = variable === undefined ? undefined : this.#read(variable)
    return value === undefined ? undefined : { value, source: 'environment', variable }
  }

  /** Where a key is, without reading it. */
  source(provider: string, variable: string | undefined): Key['source'] | undefined {
    if (this.#stored.has(provider)) return 'stored'
    if (this.#sections[provider]?.api_key !== undefined) return 'config'
    return variable !== undefined && this.#read(variable) !== undefined ? 'environment' : undefined
  }

  async store(provider: string, key: string): Promise<void> {
    await this.#vault.write(provider, key)
    this.#stored.add(provider)
  }
  async remove(provider: string): Promise<boolean> {
    this.#stored.delete(provider)
    return this.#vault.remove(provider)
  }

  #read(variable: string): string | undefined {
    return this.#environment[variable]?.trim() || undefined
  }
}
