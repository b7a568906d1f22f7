import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, Hooks } from 'svc/sdk'
import { ModelsListed } from './contract.ts'
import type { CatalogModel } from './contract.ts'
import type { CustomEntries } from './custom-entries.ts'
import type { Models } from './models.ts'
import type { RemoteRegistry } from './registry.ts'
import {
  AliasBody,
  AliasCreated,
  AliasList,
  AliasParams,
  CatalogStatus,
  CustomBody,
  CustomCreated,
  ModelDetail,
  ModelList,
  ModelParams,
  ModelQuery,
  ProviderQuery,
  Removed,
  StatusQuery,
  UpdateDone,
} from './schema.ts'
import type { ModelRow } from './schema.ts'

/** The window that is assumed for a model without a known one. */
const CONTEXT_WINDOW = 128_000

export interface RouteDeps {
  readonly models: Models
  readonly custom: () => Promise<CustomEntries>
  readonly registry: () => Promise<RemoteRegistry>
  readonly shippedVersion: () => Promise<string>
  readonly hooks: Hooks
}

const toRow = (model: CatalogModel, usable: ReadonlySet<string>): ModelRow => ({
  id: model.id,
  provider: model.provider,
  display_name: model.name,
  tier: model.tier,
  context_window: model.contextWindow ?? CONTEXT_WINDOW,
  max_output_tokens: model.maxOutputTokens,
  input_cost_per_1m: model.price?.input ?? 0,
  output_cost_per_1m: model.price?.output ?? 0,
  cached_input_cost_per_1m: model.price?.cachedInput ?? null,
  cache_write_cost_per_1m: model.price?.cacheWrite ?? null,
  supports_tools: model.supports.tools ?? false,
  supports_vision: model.supports.vision ?? false,
  supports_streaming: model.supports.streaming,
  supports_thinking: model.supports.thinking ?? false,
  pricing_known: model.price !== null,
  available: usable.has(model.provider),
})

/**
 * What a name may mean, one model of each provider, what it means without a provider first: an alias, an id,
 * `provider/id`, a dated id.
 */
function candidates(name: string, all: readonly CatalogModel[], models: Models): readonly CatalogModel[] {
  const target = models.resolveAlias(name)
  const readings = [
    ...all.filter((one) => target !== undefined && one.provider === target.provider && one.id === target.model),
    ...all.filter(({ id }) => id === name),
    ...all.filter(({ id, provider }) => `${provider}/${id}` === name),
  ]
  const dated = readings.length === 0 ? models.named(name) : undefined
  const byProvider = new Map<string, CatalogModel>()
  // An id of a provider is exactly that, whatever else the name may mean.
  for (const one of dated ? [dated] : readings)
    if (!byProvider.has(one.provider) || one.id === name) byProvider.set(one.provider, one)
  return [...byProvider.values()]
}

/** Models, aliases, custom models and the registry (Interface 4.6). */
export function catalogRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [
    listModelsRoute(deps),
    listAliasesRoute(deps),
    addAliasRoute(deps),
    removeAliasRoute(deps),
    addModelRoute(deps),
    removeModelRoute(deps),
    readModelRoute(deps),
    updateCatalogRoute(deps),
    statusRoute(deps),
  ]
}

function listModelsRoute(deps: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/models',
    summary: 'List the models that are known',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: ModelQuery,
    returns: ModelList,
    description:
      'An unknown price is 0 with `pricing_known` false; 0 with `pricing_known` true is free. ' +
      '`available`: its provider can be used now.',
    async handle({ query: { provider, tier, available } }) {
      const { models: all, usable } = await listModels(deps, provider)
      const rows = all
        .filter(
          (model) =>
            (tier === undefined || model.tier === tier) &&
            (available === undefined || usable.has(model.provider) === available),
        )
        .map((model) => toRow(model, usable))
      return { models: rows, total: rows.length, available: rows.filter((row) => row.available).length }
    },
  })
}

function readModelRoute(deps: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/models/**:id',
    summary: 'Read one model, by its id, by provider/id or by an alias',
    description:
      'Several providers may have models of one id: `providers` names them, with its maker first, and ' +
      '`?provider=` asks for the one of a provider.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ModelParams,
    query: ProviderQuery,
    returns: ModelDetail,
    errors: ['model_not_found'],
    handle: ({ params: { id }, query: { provider } }) => readModel(deps, id, provider),
  })
}

function listAliasesRoute({ models }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/models/aliases',
    summary: 'List the short names of models',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: AliasList,
    async handle() {
      await models.ready()
      const entries = [...models.aliases()]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([alias, { model }]) => [alias, model] as const)
      return { aliases: Object.fromEntries(entries), total: entries.length }
    },
  })
}

function addAliasRoute({ custom }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/models/aliases',
    summary: 'Give a model a short name',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    status: 201,
    body: AliasBody,
    returns: AliasCreated,
    errors: ['conflict', 'model_not_found'],
    example: { body: { alias: 'writer', model_id: 'anthropic/claude-sonnet-5' } },
    async handle({ body: { alias, model_id: modelId } }) {
      const target = await (await custom()).addAlias(alias, modelId)
      return { alias, model_id: target.model, provider: target.provider, status: 'created' as const }
    },
  })
}

function removeAliasRoute({ custom }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/models/aliases/:alias',
    summary: 'Remove a short name',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AliasParams,
    returns: Removed,
    errors: ['alias_not_found'],
    async handle({ params: { alias } }) {
      await (await custom()).removeAlias(alias)
      return { status: 'removed' as const }
    },
  })
}

function addModelRoute({ custom }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/models/custom',
    summary: 'Add a model that is not in the catalog',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    status: 201,
    body: CustomBody,
    returns: CustomCreated,
    errors: ['conflict'],
    example: {
      body: { id: 'acme/writer-1', provider: 'openrouter', display_name: 'Writer 1', context_window: 128_000 },
    },
    async handle({ body }) {
      const { id, provider } = await (await custom()).addModel(body)
      return { id, provider, status: 'added' as const }
    },
  })
}

function removeModelRoute({ custom }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/models/custom/**:id',
    summary: 'Remove a model that was added',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: ModelParams,
    query: ProviderQuery,
    returns: Removed,
    errors: ['model_not_found', 'conflict'],
    async handle({ params: { id }, query: { provider } }) {
      await (await custom()).removeModel(id, provider)
      return { status: 'removed' as const }
    },
  })
}

function updateCatalogRoute({ registry }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/catalog/update',
    summary: 'Update the catalog from the remote registry',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    returns: UpdateDone,
    description:
      'What the registry sends is checked whole. When it cannot be taken, the answer says why and the catalog ' +
      'stays as it was.',
    async handle() {
      const { state, changed } = await (await registry()).update()
      return {
        status: 'ok' as const,
        changed,
        files_downloaded: 1,
        models_count: state.models,
        version: state.version,
        timestamp: state.fetched_at,
      }
    },
  })
}

function statusRoute({ models, registry, shippedVersion }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/catalog/status',
    summary: 'Read how new the catalog is',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: StatusQuery,
    returns: CatalogStatus,
    description: '`updates_available` is looked up in the registry with `check=true`, and `null` without.',
    async handle({ query: { check }, signal }) {
      const remote = await registry()
      const [state, shipped, updates] = await Promise.all([
        remote.state(),
        shippedVersion(),
        check ? remote.differs(signal) : null,
        models.ready(),
      ])
      return {
        version: state?.version ?? shipped,
        shipped_version: shipped,
        registry_url: remote.url,
        last_sync: state?.fetched_at ?? null,
        last_update: state?.fetched_at ?? null,
        models_count: models.list().length,
        providers_count: models.providers(),
        updates_available: updates,
        last_error: remote.failure ?? null,
      }
    },
  })
}

/** Every model, with those only their provider knows of; it may know one better than the catalog does. */
async function listModels(
  { models, hooks }: RouteDeps,
  provider?: string,
): Promise<{ readonly models: readonly CatalogModel[]; readonly usable: ReadonlySet<string> }> {
  await models.ready()
  const { usable, models: fromProviders } = await hooks.apply(ModelsListed, { usable: new Set<string>(), models: [] })
  const known = models.list(provider)
  const further = fromProviders.filter((model) => provider === undefined || model.provider === provider)
  if (further.length === 0) return { models: known, usable }
  const all = new Map([...known, ...further].map((model) => [`${model.provider} ${model.id}`, model]))
  return { models: [...all.values()], usable }
}

async function readModel(deps: RouteDeps, id: string, provider: string | undefined) {
  const { models } = deps
  const { models: all, usable } = await listModels(deps)
  const found = candidates(id, all, models)
  const providers = found.map((one) => one.provider)
  const model = found.find((one) => provider === undefined || one.provider === provider)
  if (!model) throw new Refusal('model_not_found', describeMissing(id, provider, providers))
  const long = model.price?.long
  return {
    ...toRow(model, usable),
    aliases: [...models.aliasesOf(model)],
    origin: model.origin,
    providers,
    request_cost: model.price?.request ?? null,
    long_context:
      long === undefined
        ? null
        : { above_input_tokens: long.aboveInput, input_cost_per_1m: long.input, output_cost_per_1m: long.output },
  }
}

function describeMissing(id: string, provider: string | undefined, providers: readonly string[]): string {
  if (provider === undefined || providers.length === 0) return `Model '${id}' not found`
  const have = providers.length === 1 ? 'has' : 'have'
  return `Provider '${provider}' has no model '${id}'; ${providers.join(', ')} ${have} it`
}
