import * as v from 'valibot'
import { definePlugin, fields, fileOnly, settable } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import type { Conversations } from './conversations.ts'
import { migrations } from './migrations.ts'
import { openAiRoutes } from './routes.ts'
import { ConversationStore } from './store.ts'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: 'openai-api',
  version: '1.0.0',
  config: settable(
    'conversations can be deleted over the API as well',
    v.object({
      conversation_hours: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(1),
          v.description('Hours after which an unused conversation kept by a client is removed.'),
        ),
        168,
      ),
      fetch_images: v.optional(
        fileOnly(
          'lets callers choose hosts the daemon calls',
          v.pipe(
            v.boolean(),
            v.description(
              'Fetch images that messages name by an https address; callers then choose hosts the daemon calls.',
            ),
          ),
        ),
        false,
      ),
      max_image_bytes: fields.integer('Largest image that is fetched, in bytes.', 5_242_880, 1, 1_073_741_824),
      image_timeout_secs: fields.integer('Seconds that fetching one image may take.', 15, 1, 300),
    }),
  ),
  requires: { agents: Agents, chat: Chat, turns: Turns, sessions: Sessions },
  migrations,
  setup({ config, db, fetch, jobs, routes, services }) {
    const store = new ConversationStore(db)
    const conversations = async (): Promise<Conversations> => {
      const { Conversations } = await import('./conversations.ts')
      return new Conversations({ store, sessions: services.sessions, now: () => new Date().toISOString() })
    }
    const fetchImage = async (url: URL, signal: AbortSignal): Promise<Uint8Array> => {
      const images = await import('./fetch-image.ts')
      return images.fetchImage(fetch, url, { signal, ...config })
    }
    routes.add(...openAiRoutes({ ...services, conversations, ...(config.fetch_images ? { fetchImage } : {}) }))
    jobs.every('conversations', HOUR_MS, async () => {
      const before = new Date(Date.now() - config.conversation_hours * HOUR_MS)
      await (await conversations()).cleanup(before.toISOString())
    })
    return {}
  },
})
