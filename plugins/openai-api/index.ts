import * as v from 'valibot'
import { definePlugin, fileOnly, settable } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Conversations } from './conversations.ts'
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
      /** Conversations that clients keep themselves are removed when nobody went on with them for so long. */
      conversation_hours: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 168),
      /**
       * Fetches pictures that messages name by an https address. Callers can then make the daemon send requests to
       * hosts of their choice.
       */
      fetch_images: v.optional(fileOnly('lets callers choose hosts the daemon asks', v.boolean()), false),
      max_image_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_073_741_824)), 5_242_880),
      image_timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(300)), 15),
    }),
  ),
  requires: { agents: Agents, chat: Chat, turns: Turns, sessions: Sessions },
  migrations,
  setup({ config, db, fetch, jobs, routes, services }) {
    const conversations = new Conversations({
      store: new ConversationStore(db),
      sessions: services.sessions,
      now: () => new Date().toISOString(),
    })
    const fetchImage = async (url: URL, signal: AbortSignal): Promise<Uint8Array> => {
      const images = await import('./fetch-image.ts')
      return images.fetchImage(fetch, url, { signal, ...config })
    }
    routes.add(...openAiRoutes({ ...services, conversations, ...(config.fetch_images ? { fetchImage } : {}) }))
    jobs.every('conversations', HOUR_MS, () =>
      conversations.cleanup(new Date(Date.now() - config.conversation_hours * HOUR_MS).toISOString()),
    )
    return {}
  },
})
