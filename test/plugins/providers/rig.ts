import type { Catalog } from '../../../plugins/catalog/contract.ts'
import * as v from 'valibot'
import type { Fetch, Statement, UpstreamFailure, Vault } from 'svc/sdk'
import type { ProviderDriver } from 'svc/providers'
import { builtin } from '../../../adapters/providers/builtin/driver.ts'
import { openAiCompatible } from '../../../adapters/providers/openai-compatible/driver.ts'
import { vendors } from '../../../adapters/providers/openai-compatible/vendors.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { Breaker } from '../../../plugins/providers/breaker.ts'
import { Config } from '../../../plugins/providers/config.ts'
import { Connections } from '../../../plugins/providers/connection.ts'
import type { Inference, InferenceEvent, MediaModels, ResolvedModel } from '../../../plugins/providers/contract.ts'
import { DefaultModel } from '../../../plugins/providers/default-model.ts'
import { createInference } from '../../../plugins/providers/inference.ts'
import { Keys } from '../../../plugins/providers/keys.ts'
import { Ollama } from '../../../plugins/providers/ollama.ts'
import { KeyRotation } from '../../../plugins/providers/key-rotation.ts'
import { DriverRegistry } from '../../../plugins/providers/registry.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { outboundSettings } from '../../support/provider-stage.ts'

export interface Rig extends AsyncDisposable {
  readonly inference: Inference
  readonly media: MediaModels
  readonly registry: DriverRegistry
  readonly connections: Connections
  readonly keys: Keys
  readonly ollama: Ollama
  readonly clock: ManualClock
  /** The pauses between tries so far, in ms. Each is over at once. */
  readonly pauses: number[]
  readonly failures: UpstreamFailure[]
  /** Everything the model says to "hi". */
  ask(model?: ResolvedModel, signal?: AbortSignal): Promise<string>
}
export interface RigOptions {
  readonly config?: v.InferInput<typeof Config>
  readonly env?: Readonly<Record<string, string>>
  readonly wanted?: { readonly provider?: string; readonly model?: string }
  readonly catalog?: Catalog
  readonly drivers?: readonly ProviderDriver[]
  readonly fetch?: Fetch
  readonly random?: number
  readonly holdPauses?: boolean
  /** Whether a plugin is being loaded. */
  readonly isReloading?: () => boolean
}

const nothing = (): Statement => ({ sql: '', values: [] })
/** The parts of the providers plugin put together as it does, with a clock that is moved by hand. */
export async function createRig(options: RigOptions = {}): Promise<Rig> {
  const clock = new ManualClock()
  const config = v.parse(Config, options.config ?? {})
  const outbound = createOutbound({ settings: () => outboundSettings })
  const fetch = options.fetch ?? outbound.forOperator()
  const keys = new Keys({
    vault: memoryVault(),
    // No other daemon changes keys.
    versions: async () => ({ find: async () => 0, advance: nothing, advanceFrom: nothing }),
    environment: (name) => options.env?.[name],
    sections: config.providers,
    tellChanged: () => [],
  })
  await keys.read()
  const registry = new DriverRegistry(clock, () => {}, {
    isRunning: () => options.isReloading?.() ?? false,
    maxMs: config.reload_wait_ms,
  })
  const connections = new Connections({
    registry,
    sections: config.providers,
    keys,
    addresses: new Map<string, string>(),
    fetch,
  })
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
    configured: () => ({ provider: options.wanted?.provider, model: options.wanted?.model }),
    catalog: () => options.catalog,
  })
  for (const driver of options.drivers ?? [builtin, ...vendors.map(openAiCompatible)]) registry.add(driver)
  const pauses: number[] = []
  const failures: UpstreamFailure[] = []
  const { inference, media } = createInference({
    admit: () => Promise.resolve(),
    config,
    connections,
    keys,
    defaults,
    ollama,
    clock,
    catalog: () => undefined,
    random: () => options.random ?? 0.5,
    rotation: new KeyRotation(clock),
    breaker: new Breaker(clock, {
      failures: config.breaker_failures,
      windowMs: config.breaker_window_ms,
      pauseMs: config.breaker_pause_ms,
      trialMs: config.breaker_trial_ms,
    }),
    retrying: (_, failure, waitMs) => {
      pauses.push(waitMs)
      failures.push(failure)
      if (!options.holdPauses) setImmediate(() => clock.advance(waitMs))
    },
  })
  return {
    inference,
    media,
    registry,
    connections,
    keys,
    ollama,
    clock,
    pauses,
    failures,
    async ask(model, signal = new AbortController().signal) {
      const chosen = model ?? (await inference.resolve({ provider: 'openai', model: 'fake-1' }))
      let text = ''
      for await (const event of inference.complete(chosen, hi, signal)) if (event.type === 'text') text += event.delta
      return text
    },
    async [Symbol.asyncDispose]() {
      await ollama.close()
      await outbound[Symbol.asyncDispose]()
    },
  }
}
export const hi = {
  system: '',
  tools: [],
  turns: [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'hi' }] }],
}

export async function collectAll(events: AsyncIterable<InferenceEvent>): Promise<InferenceEvent[]> {
  const all: InferenceEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

function memoryVault(): Vault {
  const secrets = new Map<string, string>()
  return {
    read: async (name) => secrets.get(name),
    write: async (name, secret) => {
      secrets.set(name, secret)
    },
    remove: async (name) => secrets.delete(name),
    names: async () => [...secrets.keys()],
  }
}
