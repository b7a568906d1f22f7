import {
  Broadcast,
  Configuration,
  Daemon,
  DaemonListening,
  followChanges,
  monotonicClock as clock,
  readVariable,
} from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { PluginContext, Statement } from 'svc/sdk'
import { Providers } from 'svc/providers'
import { Audit } from '../audit/contract.ts'
import { Catalog, ModelsListed } from '../catalog/contract.ts'
import { Addresses } from './addresses.ts'
import { Breaker } from './breaker.ts'
import { OwnConfig, sections } from './config.ts'
import type { Config } from './config.ts'
import { Connections } from './connection.ts'
import { Inference, MediaModels, ProviderChanged, ProviderKeys } from './contract.ts'
import { DefaultModelLog } from './default-model-log.ts'
import { DefaultModel } from './default-model.ts'
import { createInference } from './inference.ts'
import { Keys } from './keys.ts'
import { addUsableModels } from './listing.ts'
import { migrations } from './migrations.ts'
import { Ollama } from './ollama.ts'
import { DriverRegistry } from './registry.ts'
import type { ReloadState } from './registry.ts'
import type { KeyImportDeps } from './key-imports.ts'
import { KeyRotation } from './key-rotation.ts'
import { providerRoutes } from './routes.ts'
import type { ProviderRouteDeps } from './routes.ts'

const requires = { broadcast: Broadcast, configuration: Configuration, daemon: Daemon }
const optional = { audit: Audit, catalog: Catalog }

export default definePlugin({
  name: 'providers',
  outbound: 'operator',
  version: '1.0.0',
  config: OwnConfig,
  sections,
  hooks: [ProviderChanged],
  requires,
  optional,
  provides: { providers: Providers, inference: Inference, media: MediaModels, keys: ProviderKeys },
  migrations,
  pages: [{ path: 'models', title: 'Models', group: 'Connections', file: 'pages/models.html', assets: ['models.js'] }],
  async setup(ctx) {
    const { config, services, fetch, log } = ctx
    const { addresses, keys } = await readStored(ctx)
    const changed = (provider: string): Promise<void> => {
      defaultLog.schedule()
      return ctx.hooks.emit(ProviderChanged, { provider })
    }
    const driverChanged = (name: string): void => void changed(name)
    const registry = new DriverRegistry(clock, driverChanged, reloadState(services.daemon, config.reload_wait_ms))
    const connections = new Connections({ registry, sections: config.providers, keys, addresses, fetch })
    const detectLimits = { timeoutMs: config.detect_ms, againMs: config.detect_again_ms }
    const ollama = new Ollama({ fetch, clock, limits: detectLimits, baseUrl: () => connections.baseUrl('ollama') })
    const configured = (key: string): string | undefined => textOf(services.configuration.shown(key))
    const shared = { connections, keys, ollama, catalog: () => ctx.optional('catalog') }
    const defaults = new DefaultModel({
      ...shared,
      configured: () => ({ provider: configured('default_provider'), model: configured('default_model') }),
    })
    const defaultLog = new DefaultModelLog({
      defaults,
      problem: () => inference.defaultProblem(),
      clock,
      log,
      isStarted: () => services.daemon.isListening,
    })
    const { inference, media } = createInference({
      ...shared,
      config,
      defaults,
      clock,
      admit: (url) => ctx.admit(url),
      random: Math.random,
      metrics: ctx.metrics,
      rotation: new KeyRotation(clock),
      breaker: createBreaker(config),
      retrying: (reason, _, waitMs) => log.warn(`${reason}; next try in ${Math.round(waitMs)} ms`),
    })
    ctx.own('drivers', async () => {
      defaultLog.close()
      await Promise.all([ollama.close(), registry.close()])
    })
    const audited = auditedChanges(() => ctx.optional('audit'), changed)
    ctx.routes.add(
      ...providerRoutes({
        ...shared,
        inference,
        addresses,
        fetch,
        configuration: services.configuration,
        detectMs: config.detect_ms,
        ...audited,
      }),
    )
    ctx.hooks.on(ModelsListed, (listing) => addUsableModels(listing, { ...shared, inference }))
    ctx.hooks.on(DaemonListening, () => defaultLog.write())
    defaultLog.schedule()
    return { providers: registry, inference, media, keys: lazyKeys({ ...shared, inference, change: audited.change }) }
  },
})

const lazyKeys = (deps: KeyImportDeps): ProviderKeys => {
  const open = async (): Promise<ProviderKeys> => (await import('./key-imports.ts')).createKeyImports(deps)
  return {
    named: async (variable) => (await open()).named(variable),
    add: async (...given) => (await open()).add(...given),
  }
}

/** What was set over the API, here or at another daemon on the database. */
async function readStored({
  config,
  db,
  hooks,
  log,
  own,
  run,
  services: { broadcast },
  storage,
  vault,
}: PluginContext<Config, typeof requires, typeof optional>): Promise<{
  readonly addresses: Addresses
  readonly keys: Keys
}> {
  const tellChanged = (): readonly Statement[] => tell('')
  const addresses = new Addresses(db, storage, tellChanged)
  const keys = new Keys({
    vault,
    versions: async () => new (await import('./stored-keys/store.ts')).KeyVersionStore(db),
    environment: readVariable,
    sections: config.providers,
    tellChanged,
  })
  const read = async (): Promise<void> => {
    await Promise.all([addresses.read(), keys.read()])
  }
  const tell = followChanges({ broadcast, own }, 'providers.connections', () => {
    run(async () => {
      await read()
      await hooks.emit(ProviderChanged, { provider: '' })
    }).catch((error: unknown) => log.error('addresses and keys of providers could not be read', error))
  })
  await read()
  return { addresses, keys }
}

function reloadState(daemon: Daemon, maxMs: number): ReloadState {
  const isChanging = ({ state }: { readonly state: string }): boolean => state === 'loading' || state === 'unloading'
  return { isRunning: () => daemon.plugins().some(isChanging), maxMs }
}

function createBreaker(config: Config): Breaker {
  return new Breaker(clock, {
    failures: config.breaker_failures,
    windowMs: config.breaker_window_ms,
    pauseMs: config.breaker_pause_ms,
    trialMs: config.breaker_trial_ms,
  })
}

/** How the routes change and call providers: each change and each call leaves an entry in the audit log. */
function auditedChanges(
  audit: () => Audit | undefined,
  changed: (provider: string) => Promise<void>,
): Pick<ProviderRouteDeps, 'auditChange' | 'auditCall' | 'change'> {
  return {
    auditChange: async (details) => audit()?.write({ event: 'config_change', details }),
    auditCall: async (details) => audit()?.write({ event: 'network_access', details }),
    async change(provider, details, work) {
      const entry = audit()?.entry({ event: 'config_change', details })
      await work(entry ? [entry] : [])
      await changed(provider)
    },
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
