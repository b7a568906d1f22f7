import { Configuration, DaemonListening, readVariable } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Providers } from 'svc/providers'
import { Audit } from '../audit/contract.ts'
import { Catalog, ModelsListed } from '../catalog/contract.ts'
import { Addresses } from './addresses.ts'
import { Announcement } from './announcement.ts'
import { Breaker } from './breaker.ts'
import { systemClock as clock } from './clock.ts'
import { OwnConfig, sections } from './config.ts'
import { Connections } from './connection.ts'
import { Inference, ProviderChanged } from './contract.ts'
import { DefaultModel } from './default-model.ts'
import { createInference } from './inference.ts'
import { Keys } from './keys.ts'
import { addUsableModels } from './listing.ts'
import { migrations } from './migrations.ts'
import { Ollama } from './ollama.ts'
import { DriverRegistry } from './registry.ts'
import { KeyRotation } from './key-rotation.ts'
import { providerRoutes } from './routes.ts'

export default definePlugin({
  name: 'providers',
  outbound: 'operator',
  version: '1.0.0',
  config: OwnConfig,
  sections,
  hooks: [ProviderChanged],
  requires: { configuration: Configuration },
  optional: { audit: Audit, catalog: Catalog },
  provides: { providers: Providers, inference: Inference },
  migrations,
  async setup(ctx) {
    const { config, services, fetch, log } = ctx
    const [addresses, keys] = await Promise.all([
      Addresses.open(ctx.db, ctx.storage),
      Keys.open(ctx.vault, readVariable, config.providers),
    ])
    const changed = (provider: string): Promise<void> => {
      announcement.soon()
      return ctx.hooks.emit(ProviderChanged, { provider })
    }
    const registry = new DriverRegistry(clock, (name) => {
      void changed(name)
    })
    const connections = new Connections({ registry, sections: config.providers, keys, addresses, fetch })
    const ollama = new Ollama({
      fetch,
      clock,
      limits: { timeoutMs: config.detect_ms, againMs: config.detect_again_ms },
      baseUrl: () => connections.baseUrl('ollama'),
    })
    const defaults = new DefaultModel({
      connections,
      keys,
      ollama,
      wanted: () => ({
        provider: textOf(services.configuration.shown('default_provider')),
        model: textOf(services.configuration.shown('default_model')),
      }),
    })
    const announcement = new Announcement(defaults, () => inference.defaultProblem(), clock, log)
    const inference = createInference({
      config,
      connections,
      keys,
      defaults,
      ollama,
      clock,
      catalog: () => ctx.optional('catalog'),
      admit: (url) => ctx.admit(url),
      random: Math.random,
      metrics: ctx.metrics,
      rotation: new KeyRotation(clock),
      breaker: new Breaker(clock, {
        failures: config.breaker_failures,
        windowMs: config.breaker_window_ms,
        pauseMs: config.breaker_pause_ms,
        trialMs: config.breaker_trial_ms,
      }),
      retrying: (reason, _, waitMs) => log.warn(`${reason}; next try in ${Math.round(waitMs)} ms`),
    })
    ctx.own('drivers', async () => {
      announcement.close()
      await Promise.all([ollama.close(), registry.close()])
    })
    ctx.routes.add(
      ...providerRoutes({
        inference,
        connections,
        keys,
        ollama,
        addresses,
        fetch,
        configuration: services.configuration,
        detectMs: config.detect_ms,
        catalog: () => ctx.optional('catalog'),
        announce: async (details) => ctx.optional('audit')?.write({ event: 'config_change', details }),
        announceCall: async (details) => ctx.optional('audit')?.write({ event: 'network_access', details }),
        async changed(provider, details, work) {
          const entry = ctx.optional('audit')?.entry({ event: 'config_change', details })
          await work(entry ? [entry] : [])
          await changed(provider)
        },
      }),
    )
    ctx.hooks.on(ModelsListed, (listing) =>
      addUsableModels(listing, { inference, connections, ollama, catalog: () => ctx.optional('catalog') }),
    )
    ctx.hooks.on(DaemonListening, () => announcement.now())
    announcement.soon()
    return { providers: registry, inference }
  },
})

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
