import * as v from 'valibot'
import { definePlugin, fields, fileOnly, Refusal } from 'svc/sdk'
import { Agents, Family } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, ToolCallStarting } from '../chat/contract.ts'
import { Chains } from './chains.ts'
import { AgentMessages, AgentMessageSending } from './contract.ts'
import { post } from './send.ts'
import { delegationTools } from './tools.ts'

export default definePlugin({
  name: 'delegation',
  version: '1.0.0',
  config: fileOnly(
    'bounds what agents get from each other',
    v.object({
      intersect_rights: fields.flag(
        'Limit what an agent does for other agents to what each of them may do itself.',
        {},
        true,
      ),
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
  setup({ config, hooks, services, tools }) {
    const chains = new Chains()
    const deps = { ...services, hooks, chains, maxDepth: config.max_depth }
    const messages: AgentMessages = { send: (message) => post(deps, message) }
    tools.add(...delegationTools(deps, config.send_timeout_secs))
    if (!config.intersect_rights) return { messages }
    // Security facts 1.12: sending to a more privileged agent gives nobody more rights than it has.
    hooks.on(ToolCallStarting, async ({ turnId, tool }) => {
      const found = tools.find(tool) ?? { name: tool, risk: 'execute' as const }
      for (const id of chains.of(turnId)) {
        const asking = await services.agents.require(id)
        if (!services.agents.mayUse(asking, found))
          throw new Refusal('forbidden', `"${asking.name}", who requested this, may not use ${tool} itself`)
      }
    })
    return { messages }
  },
})
