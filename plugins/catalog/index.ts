import { Broadcast, followChanges } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Config } from './config.ts'
import { Catalog, CatalogChanged, ModelsListed } from './contract.ts'
import type { CustomEntries } from './custom-entries.ts'
import { migrations } from './migrations.ts'
import { Models } from './models.ts'
import type { RemoteRegistry } from './registry.ts'
import { catalogRoutes } from './routes.ts'
import { readShipped } from './shipped.ts'
import type { Contents } from './shipped.ts'
import { CatalogStore } from './store.ts'

export default definePlugin({
  name: 'catalog',
  version: '1.0.0',
  config: Config,
  hooks: [ModelsListed, CatalogChanged],
  requires: { audit: Audit, broadcast: Broadcast },
  provides: { catalog: Catalog },
  migrations,
  setup({ config, db, hooks, fetch, log, own, routes, signal, services: { audit, broadcast } }) {
    const now = (): Date => new Date()
    const tell = followChanges({ broadcast, own }, 'catalog.models', () => models.changed())
    const store = new CatalogStore(db, log, () => tell(''))
    // Nothing is read here: models cost no start time until the first request.
    let reading: Promise<Contents> | undefined
    const shipped = (): Promise<Contents> =>
      (reading ??= readShipped(import.meta.url).catch((error: unknown) => {
        reading = undefined
        throw error
      }))
    const models = new Models({ store, now, shipped: async () => (await shipped()).entries })
    // Imported with the first request for it: a start does not pay for it.
    let createdRegistry: Promise<RemoteRegistry> | undefined
    const createRegistry = async (): Promise<RemoteRegistry> => {
      const { RemoteRegistry } = await import('./registry.ts')
      return new RemoteRegistry({
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
          models.changed()
          await models.ready()
          await hooks.emit(CatalogChanged, { because: 'registry' })
        },
      })
    }
    const registry = (): Promise<RemoteRegistry> => (createdRegistry ??= createRegistry())
    // Imported with the first change: a start does not pay for it.
    let createdEntries: Promise<CustomEntries> | undefined
    const createCustomEntries = async (): Promise<CustomEntries> => {
      const { CustomEntries } = await import('./custom-entries.ts')
      const limits = { aliases: config.max_aliases, models: config.max_custom_models }
      return new CustomEntries({ models, store, audit, hooks, limits, now: () => now().toISOString() })
    }
    const custom = (): Promise<CustomEntries> => (createdEntries ??= createCustomEntries())
    routes.add(
      ...catalogRoutes({ models, custom, registry, hooks, shippedVersion: async () => (await shipped()).version }),
    )
    return { catalog: models }
  },
})
