import { findNearest, suggest } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Hooks } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { aliases as shipped } from './aliases.ts'
import type { Target } from './aliases.ts'
import { CatalogChanged } from './contract.ts'
import type { Entry } from './data.ts'
import type { Models } from './models.ts'
import type { CustomBody } from './schema.ts'
import type { CatalogStore } from './store.ts'

export interface CustomEntriesDeps {
  readonly models: Models
  readonly store: CatalogStore
  readonly audit: Audit
  readonly hooks: Hooks
  readonly limits: { readonly aliases: number; readonly models: number }
  readonly now: () => string
}

/** Models and aliases that operators add and remove. */
export class CustomEntries {
  readonly #deps: CustomEntriesDeps
  /** One change at a time: what was looked up must still be true when it is written. */
  readonly #changes = new SerialQueue()
  constructor(deps: CustomEntriesDeps) {
    this.#deps = deps
  }

  /**
   * Throws `conflict` when the alias exists, `model_not_found` for an unknown model, `invalid_request` at the limit.
   */
  addAlias(alias: string, modelId: string): Promise<Target> {
    return this.#changes.run(async () => {
      const { models, store, audit, limits, now } = this.#deps
      await models.ready()
      if (models.resolveAlias(alias)) throw new Refusal('conflict', `Alias '${alias}' exists already: delete it first`)
      if ((await store.aliases()).length >= limits.aliases)
        throw new Refusal(
          'invalid_request',
          `There are ${limits.aliases} aliases of your own, which is the limit ([plugins.catalog] max_aliases)`,
        )
      const found = models.named(modelId)
      if (!found)
        throw new Refusal(
          'model_not_found',
          `Model '${modelId}' not found: an alias stands for a model of GET /api/models; add others with POST ` +
            '/api/models/custom',
        )
      const target = { provider: found.provider, model: found.id }
      await store.commit(
        store.putAlias(alias, target, now()),
        audit.entry({
          event: 'config_change',
          details: `model alias ${alias} stands for ${target.provider}/${target.model}`,
        }),
      )
      await this.#changed('alias')
      return target
    })
  }
  /** Throws `alias_not_found`. */
  removeAlias(alias: string): Promise<void> {
    return this.#changes.run(async () => {
      const { models, store, audit, now } = this.#deps
      await models.ready()
      if (!models.resolveAlias(alias)) {
        const known = [...shipped.keys(), ...(await store.aliases()).map((one) => one.alias)]
        throw new Refusal('alias_not_found', `Alias '${alias}' not found${suggest(findNearest(alias, known))}`)
      }
      await store.commit(
        shipped.has(alias) ? store.putAlias(alias, undefined, now()) : store.removeAlias(alias),
        audit.entry({
          event: 'config_change',
          details: `model alias ${alias} removed`,
          change: { before: { ...models.resolveAlias(alias) }, after: {} },
        }),
      )
      await this.#changed('alias')
    })
  }

  /** Throws `conflict` when the provider has a model of that id. */
  addModel(body: CustomBody): Promise<Entry> {
    return this.#changes.run(async () => {
      const { models, store, audit, limits, now } = this.#deps
      const entry = toEntry(body)
      await models.ready()
      if (models.list(entry.provider).some(({ id }) => id === entry.id))
        throw new Refusal('conflict', `Provider ${entry.provider} has a model '${entry.id}' already`)
      if ((await store.custom()).length >= limits.models)
        throw new Refusal(
          'invalid_request',
          `There are ${limits.models} custom models, which is the limit ([plugins.catalog] max_custom_models)`,
        )
      await store.commit(
        store.addCustom(entry, now()),
        audit.entry({
          event: 'config_change',
          details: `custom model ${entry.provider}/${entry.id} added`,
          change: { before: {}, after: { ...entry } },
        }),
      )
      await this.#changed('custom')
      return entry
    })
  }
  /**
   * By its id, or by `provider/id`. Throws `model_not_found`, `conflict` when without a provider it is not clear which.
   */
  removeModel(name: string, provider?: string): Promise<void> {
    return this.#changes.run(async () => {
      const { store, audit } = this.#deps
      const all = await store.custom()
      const found = all.filter(
        (entry) =>
          (entry.id === name || `${entry.provider}/${entry.id}` === name) &&
          (provider === undefined || entry.provider === provider),
      )
      const exact = provider === undefined ? found : found.filter(({ id }) => id === name)
      const [entry, another] = exact.length > 0 ? exact : found
      if (!entry) {
        const known = all.flatMap(({ id, provider: whose }) => [id, `${whose}/${id}`])
        throw new Refusal('model_not_found', `Custom model '${name}' not found${suggest(findNearest(name, known))}`)
      }
      if (another)
        throw new Refusal(
          'conflict',
          `Several custom models are called '${name}': name the provider, with ?provider= and one of ` +
            `${found.map((one) => one.provider).join(', ')}`,
        )
      await store.commit(
        store.removeCustom(entry.provider, entry.id),
        audit.entry({
          event: 'config_change',
          details: `custom model ${entry.provider}/${entry.id} removed`,
          change: { before: { ...entry }, after: {} },
        }),
      )
      await this.#changed('custom')
    })
  }

  async #changed(because: 'alias' | 'custom'): Promise<void> {
    this.#deps.models.changed()
    await this.#deps.models.ready()
    await this.#deps.hooks.emit(CatalogChanged, { because })
  }
}

function toEntry(body: CustomBody): Entry {
  const input = body.input_cost_per_1m ?? body.input_cost_per_m
  const output = body.output_cost_per_1m ?? body.output_cost_per_m
  if ((input === undefined) !== (output === undefined))
    throw new Refusal('invalid_request', 'input_cost_per_1m and output_cost_per_1m are given both or not at all')
  const { cached_input_cost_per_1m: cachedInput, cache_write_cost_per_1m: cacheWrite } = body
  if (input === undefined && (cachedInput !== undefined || cacheWrite !== undefined))
    throw new Refusal('invalid_request', 'a price of cached input needs input_cost_per_1m and output_cost_per_1m')
  return {
    provider: body.provider,
    id: body.id,
    name: body.display_name ?? body.id,
    context: body.context_window,
    output: body.max_output_tokens,
    tools: body.supports_tools,
    vision: body.supports_vision,
    thinking: body.supports_thinking,
    ...(!body.supports_streaming && { streaming: false as const }),
    tier: 'custom',
    prices:
      input === undefined || output === undefined
        ? null
        : [
            {
              input,
              output,
              ...(cachedInput !== undefined && { cachedInput }),
              ...(cacheWrite !== undefined && { cacheWrite }),
            },
          ],
  }
}
