import * as v from 'valibot'
import { definePlugin, fields, fileOnly, Refusal } from 'svc/sdk'
import { Agents, Family } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, ToolCallStarting, TurnEnded, Turns } from '../chat/contract.ts'
import { Chains } from './chains.ts'
import { AgentMessages, AgentMessageSending, RequestingAgents } from './contract.ts'
import { migrations } from './migrations.ts'
import { OpenMessages } from './store.ts'
import { delegationTools } from './tools.ts'

const HOUR_MS = 3_600_000
/** Entry points of turns that an agent may have caused. */
const FOR_AGENTS: ReadonlySet<string> = new Set(['agent', 'schedule', 'trigger'])
const OPEN: ReadonlySet<string> = new Set(['queued', 'running', 'waiting'])

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
  requires: { agents: Agents, family: Family, audit: Audit, chat: Chat, turns: Turns },
  provides: { messages: AgentMessages, requesting: RequestingAgents },
  hooks: [AgentMessageSending],
  migrations,
  async setup({ config, db, hooks, jobs, services, tools }) {
    const chains = new Chains()
    const open = new OpenMessages(db)
    // A turn that waits for a person goes on after a restart, and any turn after this plugin was loaded again.
    for (const { turnId, sessionId, chain } of await open.list()) chains.add(turnId, { from: '', chain, sessionId })
    const ended = async (turnId: string): Promise<void> => {
      chains.remove(turnId)
      await open.remove(turnId)
    }
    hooks.on(TurnEnded, ({ entryPoint, result }) => (FOR_AGENTS.has(entryPoint) ? ended(result.turnId) : undefined))
    let missing = new Set<string>()
    // The others that ended. A turn that `TurnFailed` reports may go on after a restart.
    jobs.every('ended', HOUR_MS, async () => {
      const before = missing
      missing = new Set()
      for (const { turnId } of await open.list()) {
        const state = (await services.turns.find(turnId))?.state
        // One that is not there yet may be about to begin.
        if (state === undefined && !before.has(turnId)) missing.add(turnId)
        else if (state === undefined || !OPEN.has(state)) await ended(turnId)
      }
    })
    const deps = { ...services, hooks, chains, open, maxDepth: config.max_depth }
    const messages: AgentMessages = { send: async (message) => (await import('./send.ts')).post(deps, message) }
    tools.add(...delegationTools(deps, config.send_timeout_secs))
    const requesting: RequestingAgents = {
      intersects: config.intersect_rights,
      of: (turnId) => chains.of(turnId),
      turnsOf: (turnId) => chains.turnsOf(turnId),
      async workFor(turnId, chain) {
        // Nobody waits: no session of its own could be waited for in a circle.
        const work = { chain, sessionId: '' }
        await open.add({ turnId, ...work })
        chains.add(turnId, { from: '', ...work })
      },
    }
    if (!config.intersect_rights) return { messages, requesting }
    // Security facts 1.12: sending to a more privileged agent gives nobody more rights than it has.
    hooks.on(ToolCallStarting, async ({ turnId, tool }) => {
      const found = tools.find(tool) ?? { name: tool, risk: 'execute' as const }
      for (const id of chains.of(turnId)) {
        const asking = await services.agents.require(id)
        if (!services.agents.mayUse(asking, found))
          throw new Refusal('forbidden', `"${asking.name}", who requested this, may not use ${tool} itself`)
      }
    })
    return { messages, requesting }
  },
})
