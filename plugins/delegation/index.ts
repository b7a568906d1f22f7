import * as v from 'valibot'
import { definePlugin, fields, fileOnly, Refusal } from 'svc/sdk'
import { Agents, Family } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, ToolCallStarting } from '../chat/contract.ts'
import { Chains } from './chains.ts'
import { AgentMessages, AgentMessageSending } from './contract.ts'
import { migrations } from './migrations.ts'
import { delegationTools } from './tools.ts'

type UsableTool = Parameters<Agents['mayUse']>[1]

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
  migrations,
  setup({ config, hooks, services, tools }) {
    const chains = new Chains()
    const deps = { ...services, hooks, chains, maxDepth: config.max_depth }
    const messages: AgentMessages = { send: async (message) => (await import('./send.ts')).post(deps, message) }
    tools.add(...delegationTools(deps, config.send_timeout_secs))
    if (!config.intersect_rights) return { messages }
    // Security facts 1.12: asking a more privileged agent gives nobody more rights than it has.
    hooks.on(ToolCallStarting, async ({ onBehalf = [], tool: name }) => {
      const found = tools.find(name)
      const tool = found ?? { name, risk: 'execute' as const }
      if (onBehalf.length > 0 && found?.reports !== true) await checkRights(services.agents, onBehalf, tool)
    })
    return { messages }
  },
})

/** Throws `forbidden` when one of the agents that asked may not use the tool itself. */
async function checkRights(agents: Agents, onBehalf: readonly string[], tool: UsableTool): Promise<void> {
  for (const id of new Set(onBehalf)) {
    const agent = await agents.find(id)
    if (!agent)
      throw new Refusal('forbidden', `An agent that requested this is gone: nobody knows whether it may ${tool.name}`)
    if (!agents.mayUse(agent, tool))
      throw new Refusal('forbidden', `"${agent.name}", who requested this, may not use ${tool.name} itself`)
  }
}
