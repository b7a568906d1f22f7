import * as v from 'valibot'
import { Daemon, definePlugin } from 'svc/sdk'
import { Providers } from 'svc/providers'
import { Breaker } from './breaker.ts'
import { systemClock } from './clock.ts'
import { Config } from './config.ts'
import { Connections } from './connection.ts'
import { Audit } from '../audit/contract.ts'
import { Inference, ProviderChanged } from './contract.ts'
import { DefaultModel } from './default-model.ts'
import { createInference } from './inference.ts'
import { Keys } from './keys.ts'
import { Ollama } from './ollama.ts'
import { DriverRegistry } from './registry.ts'
import { providerRoutes } from './routes.ts'

/** After the last driver came, so that the choice is made once and after the daemon listens. */
const ANNOUNCE_MS = 500

export default definePlugin({
  name: 'providers',
  version: '1.0.0',
  config: Config,
  requires: { daemon: Daemon },
  optional: { audit: Audit },
  provides: { providers: Providers, inference: Inference },
  async setup(ctx) {
    const { config, services, vault, storage, fetch, hooks, log } = ctx
    const clock = systemClock
    const urls = new Map(await Promise.all((await storage.getKeys('url')).map(async (key): Promise<[string, string]> => [key.slice('url:'.length), v.parse(v.string(), await storage.getItem(key))])))
    const keys = await Keys.open(vault, process.env, config.providers)
    const registry = new DriverRegistry(clock, (name) => {
      announce()
      // Never rejects: a listener that fails is logged by the host.
      void hooks.emit(ProviderChanged, { provider: name })
    })
    const connections = new Connections({ registry, sections: config.providers, keys, urls, fetch })
    const ollama = new Ollama({ fetch, clock, limits: { timeoutMs: config.detect_ms, againMs: config.detect_again_ms }, baseUrl: () => connections.baseUrl('ollama') })
    const defaults = new DefaultModel({
      connections, keys, ollama,
      wanted: () => { const { defaultProvider, defaultModel } = services.daemon.config(); return { provider: defaultProvider, model: defaultModel } },
    })
    const inference = createInference({
      config, connections, keys, defaults, ollama, clock, random: Math.random,
      breaker: new Breaker(clock, { failures: config.breaker_failures, windowMs: config.breaker_window_ms, pauseMs: config.breaker_pause_ms }),
      retrying: (provider, failure, waitMs) => log.warn(`${provider}: ${failure.message}; next try in ${Math.round(waitMs)} ms`),
    })

    let announced = ''
    let cancel = (): void => {}
    let closed = false
    function announce(): void {
      cancel()
      if (closed) return
      cancel = clock.after(ANNOUNCE_MS, () => {
        defaults.find().then(({ provider, model, because }) => {
          const line = `default model: ${provider} / ${model} (${because})`
          if (!closed && line !== announced) log.info(announced = line)
        }).catch((error: unknown) => log.warn('cannot tell the default model', error))
      })
    }
    ctx.own('default model', async () => { closed = true; cancel(); await ollama.close() })
    announce()

    ctx.routes.add(...providerRoutes({
      inference, connections, keys, ollama, fetch,
      async saveUrl(provider, url) {
        await storage.setItem(`url:${provider}`, url)
        urls.set(provider, url)
        if (provider === 'ollama') ollama.forget()
      },
      async changed(provider, details) {
        await ctx.optional('audit')?.write({ event: 'config_change', details })
        announce()
        await hooks.emit(ProviderChanged, { provider })
      },
    }))

    return { providers: registry, inference }
  },
})
