import { Refusal } from 'svc/sdk'
import type { Hooks, ToolAnswer, ToolCallContext, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { ToolCallStarting } from '../chat/contract.ts'
import { toolName } from './manifest/skill.ts'
import type { Skill } from './manifest/skill.ts'

export interface ExecuteDeps {
  readonly agents: Agents
  readonly hooks: Hooks
  readonly tools: Tools
}

/**
 * Calls a tool of a skill as if the agent had called it by its own name: by its grants and the same gate. One that
 * needs a person's approval is refused, because that person has to see its own name and arguments.
 */
export async function execute(
  { agents, hooks, tools }: ExecuteDeps,
  skill: Skill,
  named: string,
  input: unknown,
  call: ToolCallContext,
): Promise<ToolAnswer> {
  const known = skill.tools.find(({ name }) => name === named || toolName(skill.name, name) === named)
  const tool = known && tools.find(toolName(skill.name, known.name))
  if (!known || !tool) {
    const names = skill.tools.map(({ name }) => name).join(', ')
    throw new Refusal('not_found', `The skill "${skill.name}" has no tool "${named}"; it has ${names || 'none'}`)
  }
  const agent = await agents.require(call.agentId)
  if (!agents.mayUse(agent, tool)) throw new Refusal('forbidden', `This agent may not use ${tool.name}`)
  if (tool.risk === 'execute')
    throw new Refusal('forbidden', `${tool.name} needs the approval of a person: call it by that name`)
  const { callId, labels, onBehalf, sessionId, signal, turnId } = call
  await hooks.check(ToolCallStarting, {
    agent,
    turnId,
    sessionId,
    callId,
    tool: tool.name,
    args: input,
    risk: tool.risk,
    signal,
    ...(labels && { labels }),
    ...(onBehalf && { onBehalf }),
  })
  const { text, failed, structured } = await tools.call(tool.name, input, call)
  return { text, failed, ...(structured && { structured }) }
}
