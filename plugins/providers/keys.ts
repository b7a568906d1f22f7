import * as v from 'valibot'
import { KeptRows, readOwnJson } from 'svc/internal'
import { SerialQueue } from 'svc/sdk'
import type { Statement, Vault } from 'svc/sdk'
import type { ProviderDriver } from 'svc/providers'
import type { Section } from './config.ts'
import type { KeyVersionStore } from './stored-keys/store.ts'

/** A key and its source: keys of the environment may only be sent to certain addresses. */
export interface Key {
  readonly value: string
  readonly source: 'stored' | 'config' | 'environment'
  /** The variable it was in. */
  readonly variable?: string
  /** The address it was stored for. */
  readonly address?: string
}
/** Reads a variable of the environment: vendors' keys are in the variables of their own tools. */
export type Environment = (variable: string) => string | undefined

/** Some providers repeat the key that they refuse: their words are neither shown nor stored with it. */
export const withoutKey = (text: string, key: Key | undefined): string =>
  key === undefined || key.value === '' ? text : text.replaceAll(key.value, '***')

/** The variables that may hold a driver's key, in order of precedence. */
export const variablesOf = ({
  envVar,
  otherEnvVars = [],
}: Pick<ProviderDriver, 'envVar' | 'otherEnvVars'>): readonly string[] =>
  envVar === undefined ? [] : [envVar, ...otherEnvVars]

/**
 * A stored key is bound to the address the provider had then: changing the address later must not carry the key away.
 */
const StoredKeys = v.union([
  v.object({ key: v.string(), address: v.optional(v.string()) }),
  v.object({ keys: v.array(v.string()), address: v.optional(v.string()) }),
])
export interface HeldKeys {
  readonly keys: readonly string[]
  readonly address?: string | undefined
}
/** Keys of one provider. */
export const MAX_KEYS = 50

export interface KeysDeps {
  readonly vault: Vault
  readonly versions: () => Promise<Pick<KeyVersionStore, 'find' | 'advance' | 'advanceFrom'>>
  readonly environment: Environment
  readonly sections: Readonly<Record<string, Section>>
  /** For the batch that changes stored keys. */
  readonly tellChanged: () => readonly Statement[]
}

/**
 * Finds keys: stored over the API first, then the configuration, then the environment. The first of these places that
 * has any gives all of them: `api_key` and `api_keys`, or a variable and those that are numbered after it
 * (`OPENAI_API_KEY`, `OPENAI_API_KEY_2` and so on). Never keeps one.
 */
export class Keys {
  readonly #vault: Vault
  readonly #versions: KeysDeps['versions']
  readonly #environment: Environment
  readonly #sections: Readonly<Record<string, Section>>
  /** Names only. Spares a read of the vault for each call of a provider that has no stored key. */
  readonly #stored: KeptRows<ReadonlySet<string>>
  readonly #tellChanged: () => readonly Statement[]
  /** A key that is added must not replace one that was stored in between. */
  readonly #changes = new SerialQueue()

  constructor({ vault, versions, environment, sections, tellChanged }: KeysDeps) {
    this.#vault = vault
    this.#versions = versions
    this.#environment = environment
    this.#sections = sections
    this.#stored = new KeptRows(async () => new Set(await vault.names()))
    this.#tellChanged = tellChanged
  }

  /** Reads which providers have stored keys, also after another daemon changed some. Before that none has. */
  async read(): Promise<void> {
    this.#stored.changed()
    await this.#stored.get()
  }

  /** Empty when there is none. `manifestVariable` overrides the driver's own `variables`, as a manifest may. */
  async find(provider: string, variables: readonly string[], manifestVariable?: string): Promise<readonly Key[]> {
    const named = manifestVariable === undefined ? [] : this.#numbered(manifestVariable)
    if (named.length > 0) return named
    const stored = await this.#held(provider)
    if (stored)
      return stored.keys.map((value) => ({
        value,
        source: 'stored',
        ...(stored.address !== undefined && { address: stored.address }),
      }))
    const configured = this.#configured(provider)
    if (configured.length > 0) return configured
    for (const variable of variables) {
      const found = this.#numbered(variable)
      if (found.length > 0) return found
    }
    return []
  }

  /** Where a key is, without reading it. */
  source(provider: string, variables: readonly string[]): Key['source'] | undefined {
    if (this.#stored.last?.has(provider)) return 'stored'
    if (this.#configured(provider).length > 0) return 'config'
    return variables.some((variable) => this.#read(variable) !== undefined) ? 'environment' : undefined
  }

  /** What a variable holds that is no key, such as an address. */
  variable(name: string): string | undefined {
    return this.#read(name)
  }

  /**
   * Durable before it settles, together with the statements. `address` is the provider's present address: keys stored
   * for another one are dropped. Throws `invalid_request` for too many.
   */
  store(
    provider: string,
    keys: string | readonly string[],
    address: string | undefined,
    { add = false, entries = [] }: { readonly add?: boolean; readonly entries?: readonly Statement[] } = {},
  ): Promise<void> {
    const given = typeof keys === 'string' ? [keys] : keys
    return this.#changes.run(async () => {
      const { storeKeys } = await import('./key-changes.ts')
      const held = add ? () => this.#readHeld(provider) : undefined
      const deps = { vault: this.#vault, versions: await this.#versions(), held }
      await storeKeys(deps, { provider, given, address, entries: [...entries, ...this.#tellChanged()] })
      await this.read()
    })
  }
  /** Removes what is stored, together with the statements. Whether there was anything. */
  remove(provider: string, entries: readonly Statement[] = []): Promise<boolean> {
    return this.#changes.run(async () => {
      const removed = await this.#vault.remove(provider, [
        (await this.#versions()).advance(provider),
        ...entries,
        ...this.#tellChanged(),
      ])
      await this.read()
      return removed
    })
  }

  /** Without a read of the vault where none is known to be. */
  async #held(provider: string): Promise<HeldKeys | undefined> {
    return this.#stored.last?.has(provider) ? await this.#readHeld(provider) : undefined
  }
  async #readHeld(provider: string): Promise<HeldKeys | undefined> {
    const stored = await this.#vault.read(provider)
    if (stored === undefined) return undefined
    const held = v.parse(StoredKeys, readOwnJson(stored))
    return 'key' in held ? { keys: [held.key], address: held.address } : held
  }

  /** The section's own keys, or those of the variable the section names. */
  #configured(provider: string): readonly Key[] {
    const section = this.#sections[provider]
    if (!section) return []
    const own = section.api_key === undefined ? section.api_keys : [section.api_key, ...section.api_keys]
    if (own.length > 0) return own.map((value) => ({ value, source: 'config' }))
    return section.api_key_env === undefined
      ? []
      : this.#numbered(section.api_key_env).map((key) => ({ ...key, source: 'config' }))
  }
  /** What is in a variable and in those numbered after it, up to the first that is missing. */
  #numbered(variable: string): readonly Key[] {
    const first = this.#read(variable)
    if (first === undefined) return []
    const keys: Key[] = [{ value: first, source: 'environment', variable }]
    for (let number = 2; number <= MAX_KEYS; number++) {
      const value = this.#read(`${variable}_${number}`)
      if (value === undefined) break
      keys.push({ value, source: 'environment', variable: `${variable}_${number}` })
    }
    return keys
  }
  #read(variable: string): string | undefined {
    return this.#environment(variable)?.trim() || undefined
  }
}
