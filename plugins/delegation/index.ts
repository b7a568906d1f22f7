import * as v from 'valibot'
import { definePlugin, fileOnly, Refusal } from 'svc/sdk'
import { Agents, Family } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, ToolCallStarting } from '../chat/contract.ts'
import { Chains } from './chains.ts'
import { delegationTools } from './tools.ts'

export default definePlugin({
  name: 'delegation',
  version: '1.0.0',
  config: fileOnly(
    'bounds what agents get from each other',
    v.object({
      /** What agents do for agents is limited to what all that wait for it may do themselves. */
      intersect_rights: v.optional(v.boolean(), true),
      /** Agents that wait for agents. */
      max_depth: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100)), 5),
      /** Longer than other tools, because a whole turn of another agent is inside. */
      send_timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(86_400)), 600),
    }),
  ),
  requires: { agents: Agents, family: Family, audit: Audit, chat: Chat },
  setup({ config, hooks, services, tools }) {
    const chains = new Chains()
    tools.add(...delegationTools({ ...services, chains, maxDepth: config.max_depth }, config.send_timeout_secs))
    if (!config.intersect_rights) return {}
    // Security facts 1.12: asking a mightier agent gives nobody more than it has.
    hooks.on(ToolCallStarting, async ({ turnId, tool }) => {
      const found = tools.find(tool) ?? { name: tool, risk: 'execute' as const }
      for (const id of chains.of(turnId)) {
        const asking = await services.agents.require(id)
        if (!services.agents.mayUse(asking, found))
          throw new Refusal('forbidden', `"${asking.name}", who asked for this, may not use ${tool} itself`)
      }
    })
    return {}
  },
})
