import * as v from 'valibot'
import { definePlugin, fields, settable } from 'svc/sdk'
import { MEDIA_KINDS } from 'svc/providers'
import type { MediaKind } from 'svc/providers'
import { AgentKilling, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Inference, MediaModels, ProviderChanged } from '../providers/contract.ts'
import { Usage } from '../usage/contract.ts'
import type { MediaDeps } from './calls.ts'
import { MediaCreated } from './contract.ts'
import { migrations } from './migrations.ts'
import { mediaRoutes } from './routes.ts'
import { CallStore } from './store.ts'
import { mediaTools } from './tools.ts'

const DAY_MS = 86_400_000
/** A call that was cut off is decided about at the next start. */
const KEEP_DAYS = 30

const choice = (what: string) =>
  v.optional(
    v.pipe(
      v.object({
        provider: v.pipe(v.string(), v.minLength(1), v.description('Name of the provider.')),
        model: v.exactOptional(
          v.pipe(
            v.string(),
            v.minLength(1),
            v.description("Model of that provider; the provider's usual one when unset."),
          ),
        ),
      }),
      v.description(`The provider that ${what}; by itself one with a key, the agent's own first.`),
    ),
  )
const usd = (description: string) =>
  v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(0), v.description(description)))

const Config = settable(
  'chooses among providers that have their keys already, and says what of them is counted',
  v.object({
    images: choice('makes pictures'),
    speech: choice('reads texts aloud'),
    transcription: choice('writes down recordings'),
    voice: v.exactOptional(v.pipe(v.string(), v.description("Voice of speech; the provider's usual one when unset."))),
    max_images: fields.integer('Pictures of one call.', 4, 1, 10),
    max_speech_chars: fields.integer('Characters that one call reads aloud.', 4096, 1, 100_000),
    max_audio_bytes: fields.integer('Largest recording that is transcribed, in bytes.', 26_214_400, 1, 1_073_741_824),
    timeout_secs: fields.integer('Seconds that a provider may take for one call.', 180, 1, 3600),
    prices: v.optional(
      v.pipe(
        v.record(
          v.string(),
          v.object({
            input: usd('USD per million tokens that are read.'),
            output: usd('USD per million tokens that are made.'),
            image: usd('USD per picture.'),
            million_chars: usd('USD per million characters that are read aloud.'),
            minute: usd('USD per minute that is transcribed.'),
          }),
        ),
        v.description('Prices by provider/model, where they are not known or differ.'),
      ),
      {},
    ),
  }),
)
export type Config = v.InferOutput<typeof Config>

export default definePlugin({
  name: 'media',
  version: '1.0.0',
  config: Config,
  requires: { agents: Agents, audit: Audit, inference: Inference, media: MediaModels, workspaces: Workspaces },
  optional: { usage: Usage },
  hooks: [MediaCreated],
  migrations,
  setup({ config, db, hooks, jobs, leaving, metrics, optional, routes, services, tools }) {
    const { inference, media } = services
    const store = new CallStore(db)
    const deps: MediaDeps = {
      ...services,
      config,
      db,
      hooks,
      store,
      made: metrics.counter('svc_media_calls_total', 'Calls for pictures, speech and transcriptions, by outcome.'),
      usage: () => optional('usage'),
    }
    const isUsable = (name: string): boolean =>
      inference.providers().some((each) => each.name === name && each.authStatus !== 'missing')
    const used = (kind: MediaKind) => {
      const configured = config[kind]
      return configured ? (isUsable(configured.provider) ? configured : undefined) : media.usable(kind)[0]
    }
    let offered = ''
    // A key that is added or removed counts from the next turn on.
    const offer = (): void => {
      const kinds = MEDIA_KINDS.filter((kind) => used(kind) !== undefined)
      if (kinds.join(' ') === offered) return
      offered = kinds.join(' ')
      tools.set(
        'media',
        mediaTools(() => deps, kinds, config.timeout_secs),
      )
    }
    offer()
    hooks.on(ProviderChanged, offer)
    hooks.on(AgentKilling, ({ agent, statements }) => ({
      agent,
      statements: [...statements, store.removeOf(agent.id)],
    }))
    jobs.every('calls', DAY_MS, () => store.prune(new Date(Date.now() - KEEP_DAYS * DAY_MS).toISOString()))
    routes.add(...mediaRoutes({ deps, leaving, usable: (kind) => media.usable(kind), used }))
    return {}
  },
})
