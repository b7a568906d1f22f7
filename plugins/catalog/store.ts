import * as v from 'valibot'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Target } from './aliases.ts'
import { Entry } from './data.ts'
import { readOwnJson, RowReader } from 'svc/internal'

/** There is one registry; the column allows for more. */
const REGISTRY = 'registry'
const AliasRow = v.pipe(
  v.object({ alias: v.string(), provider: v.nullable(v.string()), model: v.nullable(v.string()) }),
  v.transform(({ alias, provider, model }): { alias: string; target: Target | undefined } => ({
    alias,
    target: provider === null || model === null ? undefined : { provider, model },
  })),
)
const RegistryState = v.object({
  url: v.string(),
  version: v.string(),
  fetched_at: v.string(),
  models: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)),
})
export type RegistryState = v.InferOutput<typeof RegistryState>
const Json = v.pipe(v.string(), v.transform(readOwnJson))
const ModelRow = v.pipe(
  v.object({ entry: v.pipe(Json, Entry) }),
  v.transform(({ entry }) => entry),
)
/** Every entry was checked before it was stored. */
const RegistryRow = v.object({
  entries: v.pipe(
    Json,
    v.custom<readonly Entry[]>((value) => Array.isArray(value)),
  ),
})

export class CatalogStore {
  readonly #db: PluginDatabase
  readonly #aliases: RowReader<typeof AliasRow>
  readonly #models: RowReader<typeof ModelRow>
  readonly #state: RowReader<typeof RegistryState>
  readonly #registry: RowReader<typeof RegistryRow>
  readonly #tellChanged: () => readonly Statement[]
  /** `tellChanged` is for each batch that changes rows: other daemons have them in memory. */
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>, tellChanged: () => readonly Statement[] = () => []) {
    this.#db = db
    this.#aliases = new RowReader({ table: 'catalog_alias', key: ['alias'], schema: AliasRow, log })
    this.#models = new RowReader({ table: 'catalog_model', key: ['provider', 'id'], schema: ModelRow, log })
    const registry = { table: 'catalog_registry', key: ['name'], log }
    this.#state = new RowReader({ ...registry, schema: RegistryState })
    this.#registry = new RowReader({ ...registry, schema: RegistryRow })
    this.#tellChanged = tellChanged
  }

  async aliases() {
    return this.#aliases.all(await this.#db.all`SELECT alias, provider, model FROM catalog_alias ORDER BY alias`)
  }
  putAlias(alias: string, target: Target | undefined, at: string): Statement {
    return this.#db.sql`INSERT INTO catalog_alias (alias, provider, model, created_at)
        VALUES (${alias}, ${target?.provider ?? null}, ${target?.model ?? null}, ${at})
      ON CONFLICT (alias) DO UPDATE SET provider = excluded.provider, model = excluded.model,
        created_at = excluded.created_at`
  }
  removeAlias(alias: string): Statement {
    return this.#db.sql`DELETE FROM catalog_alias WHERE alias = ${alias}`
  }

  async custom(): Promise<readonly Entry[]> {
    return this.#models.all(await this.#db.all`SELECT provider, id, entry FROM catalog_model ORDER BY provider, id`)
  }
  /** Fails when it is there already. */
  addCustom(entry: Entry, at: string): Statement {
    return this.#db.sql`INSERT INTO catalog_model (provider, id, entry, created_at)
        VALUES (${entry.provider}, ${entry.id}, ${JSON.stringify(entry)}, ${at})`
  }
  removeCustom(provider: string, id: string): Statement {
    return this.#db.sql`DELETE FROM catalog_model WHERE provider = ${provider} AND id = ${id}`
  }

  async registryState(): Promise<RegistryState | undefined> {
    return this.#state.one(
      await this.#db.one`SELECT name, url, version, fetched_at, models FROM catalog_registry WHERE name = ${REGISTRY}`,
    )
  }
  async registry(): Promise<{ readonly entries: readonly Entry[] } | undefined> {
    return this.#registry.one(await this.#db.one`SELECT name, entries FROM catalog_registry WHERE name = ${REGISTRY}`)
  }
  putRegistry(state: RegistryState, entries: readonly Entry[]): Statement {
    return this.#db.sql`INSERT INTO catalog_registry (name, url, version, fetched_at, models, entries)
      VALUES (${REGISTRY}, ${state.url}, ${state.version}, ${state.fetched_at}, ${state.models},
        ${JSON.stringify(entries)})
      ON CONFLICT (name) DO UPDATE SET url = excluded.url, version = excluded.version,
        fetched_at = excluded.fetched_at, models = excluded.models, entries = excluded.entries`
  }
  commit(...statements: readonly Statement[]): Promise<readonly { readonly changes: number }[]> {
    return this.#db.batch([...statements, ...this.#tellChanged()])
  }
}
