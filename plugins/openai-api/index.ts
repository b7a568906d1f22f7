import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Chat } from '../chat/contract.ts'
import { openAiRoutes } from './routes.ts'

export default definePlugin({
  name: 'openai-api',
  version: '1.0.0',
  config: v.object({}),
  requires: { agents: Agents, chat: Chat },
  setup({ routes, services: { agents, chat } }) {
    routes.add(...openAiRoutes(agents, chat))
    return {}
  },
})
