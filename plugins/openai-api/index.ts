import * as v from 'valibot'
import { definePlugin, settable } from 'svc/sdk'
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
    }),
  ),
  requires: { agents: Agents, chat: Chat, turns: Turns, sessions: Sessions },
  migrations,
  setup({ config, db, jobs, routes, services }) {
    const conversations = new Conversations({
      store: new ConversationStore(db),
      sessions: services.sessions,
      now: () => new Date().toISOString(),
    })
    routes.add(...openAiRoutes({ ...services, conversations }))
    jobs.every('conversations', HOUR_MS, () =>
      conversations.cleanup(new Date(Date.now() - config.conversation_hours * HOUR_MS).toISOString()),
    )
    return {}
  },
})
