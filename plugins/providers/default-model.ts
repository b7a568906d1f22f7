import type { Catalog } from '../catalog/contract.ts'
import type { Connections } from './connection.ts'
import { variablesOf } from './keys.ts'
import type { Keys } from './keys.ts'
import type { Ollama } from './ollama.ts'

/** The order of preference when several providers have a key. Others follow in alphabetical order. */
export const PREFERENCE = [
  'openai',
  'anthropic',
  'gemini',
  'openrouter',
  'groq',
  'deepseek',
  'mistral',
  'xai',
  'together',
  'fireworks',
  'cerebras',
  'moonshot',
  'qwen',
  'zai',
  'zhipu',
  'minimax',
  'perplexity',
  'sambanova',
  'nvidia-nim',
  'novita',
  'deepinfra',
  'huggingface',
]
/** What a driver names that knows no usual model. */
const UNKNOWN = 'default'
const LIST_MS = 3000
const BUILTIN = { provider: 'builtin', model: 'offline' }

export interface DefaultChoice {
  readonly provider: string
  readonly model: string
  /** Why, for the log. */ readonly because: string
}
export interface ConfiguredModel {
  readonly provider: string | undefined
  readonly model: string | undefined
}

/** Whether a name stands for whatever the daemon is configured to use. */
export const isDefault = (name: string | undefined): boolean =>
  name === undefined || name === '' || name === 'default' || name === 'auto'

/**
 * Resolves `default`: the configuration, else the first provider with a key, else a local Ollama, else the offline
 * model.
 */
export class DefaultModel {
  readonly #connections: Connections
  readonly #keys: Keys
  readonly #ollama: Ollama
  readonly #configured: () => ConfiguredModel
  readonly #catalog: () => Catalog | undefined
  readonly #firstModels = new Map<string, string>()

  constructor(deps: {
    connections: Connections
    keys: Keys
    ollama: Ollama
    configured: () => ConfiguredModel
    catalog: () => Catalog | undefined
  }) {
    this.#connections = deps.connections
    this.#keys = deps.keys
    this.#ollama = deps.ollama
    this.#configured = deps.configured
    this.#catalog = deps.catalog
  }

  /** What the configuration names. */
  configured(): ConfiguredModel {
    return this.#configured()
  }

  async find(): Promise<DefaultChoice> {
    const configured = this.#configured()
    const model = isDefault(configured.model) ? undefined : configured.model
    if (configured.provider !== undefined && !isDefault(configured.provider)) {
      return {
        provider: configured.provider,
        model: model ?? (await this.modelOf(configured.provider)),
        because: 'default_provider',
      }
    }
    const keyed = this.#withKey()
    // `default_model = "groq/llama-3.3-70b"` names both. A model of a provider may begin with its name, as openrouter/auto.
    const [prefix = '', ...rest] = model?.split('/') ?? []
    const isWhole = prefix === keyed?.provider && model !== undefined && (await this.#lists(prefix, model))
    if (rest.length > 0 && this.#connections.driver(prefix) && !isWhole)
      return { provider: prefix, model: rest.join('/'), because: 'default_model' }
    if (keyed)
      return { provider: keyed.provider, model: model ?? (await this.modelOf(keyed.provider)), because: keyed.because }
    const { models } = this.#connections.driver('ollama') ? await this.#ollama.detected() : { models: [] }
    if (models.length > 0)
      return { provider: 'ollama', model: model ?? (await this.modelOf('ollama')), because: 'a local Ollama answers' }
    return { ...BUILTIN, because: 'no provider has a key and no local Ollama answers' }
  }

  /** The model of a provider when none is named. */
  async modelOf(provider: string): Promise<string> {
    const configured = this.#connections.section(provider)?.default_model
    if (configured !== undefined) return configured
    // What is installed beats what is usual.
    const installed = provider === 'ollama' ? (await this.#ollama.detected()).models[0] : undefined
    const usual = installed ?? this.#connections.driver(provider)?.driver.defaultModel ?? UNKNOWN
    return usual === UNKNOWN ? await this.#firstOf(provider) : usual
  }

  async #lists(provider: string, model: string): Promise<boolean> {
    const known = this.#catalog()
    await known?.ready()
    return known?.find(this.#connections.catalogName(provider), model) !== undefined
  }

  /** The first model that a server without a default lists, such as vLLM. Asked once for each address. */
  async #firstOf(provider: string): Promise<string> {
    const address = this.#connections.baseUrl(provider)
    if (address === undefined) return UNKNOWN
    const there = this.#firstModels.get(address)
    if (there !== undefined) return there
    try {
      const { entry, client } = await this.#connections.open({ provider })
      const [first] = await entry.use(LIST_MS, async (signal) => (await client.models?.(signal)) ?? [])
      if (first !== undefined) this.#firstModels.set(address, first)
      return first ?? UNKNOWN
    } catch {
      // The call itself will report the problem.
      return UNKNOWN
    }
  }

  /** Providers that have a key, the preferred ones first. */
  keyed(): readonly string[] {
    const rank = (name: string): number => {
      const at = PREFERENCE.indexOf(name)
      return at < 0 ? PREFERENCE.length : at
    }
    return [...this.#connections.names()]
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .filter((provider) => this.#source(provider) !== undefined)
  }

  #withKey(): { provider: string; because: string } | undefined {
    const provider = this.keyed().find((name) => this.#canBeDefault(name))
    if (provider === undefined) return undefined
    const driver = this.#connections.driver(provider)?.driver
    const source = this.#source(provider)
    const variable = driver && variablesOf(driver).find((name) => this.#keys.variable(name) !== undefined)
    return {
      provider,
      because:
        source === 'environment'
          ? `${variable} is set`
          : source === 'config'
            ? `[providers.${provider}] api_key is set`
            : 'its key is stored',
    }
  }
  /**
   * A variable that other tools share says nothing about models, and a provider without an address cannot be called.
   */
  #canBeDefault(name: string): boolean {
    const driver = this.#connections.driver(name)?.driver
    return !(driver?.sharedKey && this.#source(name) === 'environment') && this.#connections.baseUrl(name) !== undefined
  }
  #source(provider: string): ReturnType<Keys['source']> {
    const driver = this.#connections.driver(provider)?.driver
    return driver && this.#keys.source(provider, variablesOf(driver))
  }
}
