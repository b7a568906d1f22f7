import * as v from 'valibot'
import { definePlugin, fields, fileOnly } from 'svc/sdk'
import { Agents, Family } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat } from '../chat/contract.ts'
import { Chains } from './chains.ts'
import { AgentMessages, AgentMessageSending } from './contract.ts'
import { migrations } from './migrations.ts'
import { delegationTools } from './tools.ts'

export default definePlugin({
  name: 'delegation',
  version: '1.0.0',
  config: fileOnly(
    'bounds what agents get from each other',
    v.object({
      max_depth: fields.integer('Agents in a row of which each waits for the next.', 5, 1, 100),
      send_timeout_secs: fields.integer(
        'Seconds an agent waits for the answer of another agent, which is a whole turn.',
        600,
        1,
        86_400,
      ),
    }),
  ),
  requires: { agents: Agents, family: Family, audit: Audit, chat: Chat },
  provides: { messages: AgentMessages },
  hooks: [AgentMessageSending],
  migrations,
  setup({ config, hooks, services, tools }) {
    const chains = new Chains()
    const deps = { ...services, hooks, chains, maxDepth: config.max_depth }
    const messages: AgentMessages = { send: async (message) => (await import('./send.ts')).post(deps, message) }
    tools.add(...delegationTools(deps, config.send_timeout_secs))
    return { messages }
  },
})
