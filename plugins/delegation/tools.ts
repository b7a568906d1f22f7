import * as v from 'valibot'
import { defineTool, omitUndefined } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Family, Capability } from '../agents/contract.ts'
import type { SendDeps } from './send.ts'

const texts = (max: number) => v.pipe(v.array(v.pipe(v.string(), v.maxLength(1024))), v.maxLength(max))
const whom = v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of the agent'))

export const Spawn = v.object({
  manifest_toml: v.optional(v.pipe(v.string(), v.description('A whole manifest. Instead of the fields below.'))),
  name: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
  system_prompt: v.optional(v.pipe(v.string(), v.maxLength(65_536), v.description('What it is for and how it works'))),
  tools: v.optional(v.pipe(texts(500), v.description('Names of tools; none when absent'))),
  network: v.optional(
    v.pipe(v.union([v.boolean(), texts(500)]), v.description('Hosts it may reach; true for those you may reach')),
  ),
  shell: v.optional(v.pipe(texts(500), v.description('Commands it may run'))),
})

export function delegationTools(deps: SendDeps & { readonly family: Family }, timeoutSecs: number): readonly AnyTool[] {
  const { agents, family } = deps
  const ask = defineTool({
    name: 'agent_send',
    risk: 'write',
    needs: 'agent_message' satisfies Capability,
    timeoutSecs,
    labels: ['UntrustedAgent'],
    refuses: ['Secret'],
    description:
      'Send a message to another agent and wait for its answer. ' +
      'It remembers earlier messages of yours with the same conversation_key.',
    input: v.object({
      agent_id: whom,
      message: v.pipe(v.string(), v.minLength(1)),
      conversation_key: v.optional(v.pipe(v.string(), v.maxLength(256)), ''),
    }),
    async run(input, call) {
      const { send } = await import('./send.ts')
      return send(deps, input.agent_id, input.message, input.conversation_key, call)
    },
  })
  const spawn = defineTool({
    name: 'agent_spawn',
    risk: 'execute',
    effect: 'lasting',
    needs: 'agent_spawn' satisfies Capability,
    refuses: ['ExternalNetwork', 'UntrustedAgent'],
    description:
      'Make a new agent. It may do nothing that you may not do. ' +
      'Give manifest_toml, or name and system_prompt. Answers JSON with its agent_id.',
    input: Spawn,
    async run(input, { agentId, onBehalf, labels }) {
      const parent = await agents.require(agentId)
      const { toManifest } = await import('./to-manifest.ts')
      const by = omitUndefined({ onBehalf, labels })
      const { id, name } = await family.spawn(parent.id, toManifest(input, parent), by)
      return JSON.stringify({ agent_id: id, name })
    },
  })
  const kill = defineTool({
    name: 'agent_kill',
    risk: 'write',
    effect: 'lasting',
    description: 'End an agent that you created, or a descendant of one, with its sessions and files.',
    input: v.object({ agent_id: whom }),
    async run(input, { agentId }) {
      const { name } = await family.kill(agentId, (await agents.resolve(input.agent_id)).id)
      return `Agent "${name}" is killed.`
    },
  })
  return [ask, spawn, kill]
}
