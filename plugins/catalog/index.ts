import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Config } from './config.ts'
import { Catalog, CatalogChanged, ModelsListed } from './contract.ts'
import type { CustomEntries } from './custom-entries.ts'
import { migrations } from './migrations.ts'
import { Models } from './models.ts'
import { RemoteRegistry } from './registry.ts'
import { catalogRoutes } from './routes.ts'
import { readShipped } from './shipped.ts'
import type { Contents } from './shipped.ts'
import { CatalogStore } from './store.ts'

export default definePlugin({
  name: 'catalog',
  version: '1.0.0',
  config: Config,
  hooks: [ModelsListed, CatalogChanged],
  requires: { audit: Audit },
  provides: { catalog: Catalog },
  migrations,
  setup({ config, db, hooks, fetch, routes, signal, services: { audit } }) {
    const now = (): Date => new Date()
    const store = new CatalogStore(db)
    // Nothing is read here: the models cost no start time until someone asks for one.
    let reading: Promise<Contents> | undefined
    const shipped = (): Promise<Contents> =>
      (reading ??= readShipped(import.meta.url).catch((error: unknown) => {
        reading = undefined
        throw error
      }))
    const models = new Models({ store, now, shipped: async () => (await shipped()).entries })
    const registry = new RemoteRegistry({
      store,
      audit,
      fetch,
      now,
      signal,
      url: config.registry_url,
      limits: {
        timeoutMs: config.registry_timeout_ms,
        maxBytes: config.max_registry_bytes,
        maxModels: config.max_registry_models,
      },
      async changed() {
        await models.refresh()
        await hooks.emit(CatalogChanged, { because: 'registry' })
      },
    })
    // Imported with the first change: a start does not pay for it.
    let created: Promise<CustomEntries> | undefined
    const createCustomEntries = async (): Promise<CustomEntries> => {
      const { CustomEntries } = await import('./custom-entries.ts')
      const limits = { aliases: config.max_aliases, models: config.max_custom_models }
      return new CustomEntries({ models, store, audit, hooks, limits, now: () => now().toISOString() })
    }
    const custom = (): Promise<CustomEntries> => (created ??= createCustomEntries())
    routes.add(
      ...catalogRoutes({ models, custom, registry, hooks, shippedVersion: async () => (await shipped()).version }),
    )
    return { catalog: models }
  },
})
