import * as v from 'valibot'
import { defineTool, idempotencyKey } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agents, Capability } from '../agents/contract.ts'
import type { LazyRuntime } from './routes.ts'

/** What other nodes say is text from outside, written by an agent nobody here knows. */
const labels = ['UntrustedAgent', 'ExternalNetwork']

const Send = v.object({
  peer: v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of the other daemon')),
  agent: v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of the agent there')),
  message: v.pipe(v.string(), v.minLength(1)),
})

export function peerTools(runtime: LazyRuntime, agents: Agents, timeoutSecs: number): readonly AnyTool[] {
  const list = defineTool({
    name: 'peer_agents',
    risk: 'read',
    needs: 'ofp_discover' satisfies Capability,
    labels,
    description: 'List the other daemons and their agents, whom peer_send reaches. Answers JSON.',
    input: v.object({ query: v.optional(v.pipe(v.string(), v.maxLength(1024)), '') }),
    async run({ query }) {
      const { listPeers } = await import('./views.ts')
      const words = query.trim().toLowerCase()
      const matches = (text: string): boolean => text.toLowerCase().includes(words)
      const peers = (await listPeers(await runtime())).map(
        ({ node_id: id, node_name: name, state, agents: theirs }) => ({
          node_id: id,
          node_name: name,
          state,
          agents: theirs.filter((agent) => matches(agent.name) || matches(agent.description)),
        }),
      )
      return JSON.stringify({ peers })
    },
  })
  const send = defineTool({
    name: 'peer_send',
    risk: 'write',
    needs: 'ofp_connect' satisfies Capability,
    timeoutSecs,
    labels,
    refuses: ['Secret'],
    description:
      'Send a message to an agent of another daemon and wait for its answer. peer_agents lists them. ' +
      'The agent there remembers earlier messages of yours.',
    input: Send,
    assess: ({ peer, agent }) => ({ intent: `send a message to agent "${agent}" of the daemon "${peer}"` }),
    async run({ peer, agent, message }, call) {
      const opened = await runtime()
      const { requirePermitted } = await import('./permitted.ts')
      const { node_id: nodeId } = await requirePermitted(opened, agents, peer, call.agentId)
      const { sendMessage } = await import('./messages.ts')
      const id = idempotencyKey(call)
      const { agentName: sender, hops, signal } = call
      return await sendMessage(opened, { id, peer: nodeId, agent, text: message, sender, hops }, signal)
    },
    // The other daemon knows the message by its id, and makes one turn of it.
    recover: async () => ({ outcome: 'repeat' }),
  })
  return [list, send]
}
