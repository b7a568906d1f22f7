import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Target } from './aliases.ts'
import { Entry } from './data.ts'
import { readOwnJson } from 'svc/internal'

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
const Text = v.object({ entry: v.string() })
const json = <S extends v.GenericSchema>(schema: S, text: string): v.InferOutput<S> =>
  v.parse(schema, readOwnJson(text))

export class CatalogStore {
  readonly #db: PluginDatabase
  readonly #tellChanged: () => readonly Statement[]
  /** `tellChanged` is for each batch that changes rows: other daemons have them in memory. */
  constructor(db: PluginDatabase, tellChanged: () => readonly Statement[] = () => []) {
    this.#db = db
    this.#tellChanged = tellChanged
  }

  async aliases() {
    return v.parse(
      v.array(AliasRow),
      await this.#db.all`SELECT alias, provider, model FROM catalog_alias ORDER BY alias`,
    )
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
    const rows = v.parse(v.array(Text), await this.#db.all`SELECT entry FROM catalog_model ORDER BY provider, id`)
    return rows.map(({ entry }) => json(Entry, entry))
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
    return v.parse(
      v.optional(RegistryState),
      await this.#db.one`SELECT url, version, fetched_at, models FROM catalog_registry WHERE name = ${REGISTRY}`,
    )
  }
  async registry(): Promise<{ readonly entries: readonly Entry[] } | undefined> {
    const row = v.parse(
      v.optional(v.object({ entries: v.string() })),
      await this.#db.one`SELECT entries FROM catalog_registry WHERE name = ${REGISTRY}`,
    )
    // Every entry was checked before it was stored.
    return (
      row && {
        entries: json(
          v.custom<readonly Entry[]>((value) => Array.isArray(value)),
          row.entries,
        ),
      }
    )
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
