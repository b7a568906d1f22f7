import { renderToml } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Manifest } from '../agents/contract.ts'
import type { Hand } from './catalog.ts'
import type { Definition } from './definition.ts'
import type { AgentTable, Helper } from './roles.ts'

export const DEFAULT_NAME = 'default'

/** One agent of an instance. */
export interface Part extends Pick<Definition, 'tools' | 'skills' | 'mcp_servers' | 'capabilities' | 'base'> {
  /** `undefined` for the agent of a hand that has one only. */
  readonly role: string | undefined
  /** Of the agent. */
  readonly name: string
  readonly agent: AgentTable
  /** Added to its prompt. */
  readonly text: string
}

/** The coordinator, or the only agent. */
export function coordinatorOf({ definition, skill }: Pick<Hand, 'definition' | 'skill'>, instanceName: string): Part {
  const { agent, capabilities, helpers, id, role } = definition
  if (role === undefined)
    return {
      ...definition,
      name: instanceName === DEFAULT_NAME ? agent.name : `${agent.name}-${instanceName}`,
      text: skill,
    }
  const team = helpers.map((helper) => ({ name: agentName(id, instanceName, helper.role), hint: helper.hint }))
  const lines = team.map(({ name, hint }) => (hint === '' ? `- ${name}` : `- ${name}: ${hint}`))
  const text =
    team.length === 0
      ? ''
      : `## Agents that work for you\nNothing else wakes them. Ask one with agent_send, with all that it needs to know: ` +
        `it sees neither your settings nor this conversation.\n${lines.join('\n')}`
  return {
    ...definition,
    name: agentName(id, instanceName, role),
    capabilities: {
      ...capabilities,
      agent_message: [...new Set([...capabilities.agent_message, ...team.map(({ name }) => name)])],
    },
    text: [skill.trim(), text].filter((each) => each !== '').join('\n\n'),
  }
}
/** An agent beside it. */
export const helperOf = ({ id }: Definition, instanceName: string, helper: Helper): Part => ({
  ...helper,
  name: agentName(id, instanceName, helper.role),
  text: '',
})
const agentName = (handId: string, instanceName: string, role: string): string =>
  [handId, ...(instanceName === DEFAULT_NAME ? [] : [instanceName]), role].join('-')

/** The manifest of an agent of an instance: what the definition grants and nothing else. `base`: of its template. */
export function manifestOf(
  { id, category, description, version }: Definition,
  instance: { readonly id: string; readonly name: string },
  part: Part,
  base?: Manifest,
): string {
  const { agent, capabilities, role, skills, mcp_servers: servers, text, tools } = part
  const { network, shell, agent_message } = capabilities
  const prompt = agent.system_prompt === '' ? (base?.model.system_prompt ?? '') : agent.system_prompt
  const model = agent.model === 'default' && base ? { ...agent, ...choiceOf(base) } : agent
  return renderToml({
    name: part.name,
    version,
    description: agent.description || base?.description || description,
    author: 'hand',
    tags: ['hand', category],
    skills: [...skills],
    // Empty lists would mean all of them.
    skills_disabled: skills.length === 0,
    mcp_servers: [...servers],
    mcp_disabled: servers.length === 0,
    model: omitUndefined({
      provider: model.provider,
      model: model.model,
      api_key_env: agent.api_key_env,
      base_url: agent.base_url,
      max_tokens: agent.max_tokens,
      temperature: agent.temperature,
      system_prompt: text === '' ? prompt : `${prompt.trimEnd()}\n\n${text}`,
    }),
    capabilities: { tools: [...tools], network: [...network], shell: [...shell], agent_message: [...agent_message] },
    autonomous: { max_iterations: agent.max_iterations },
    metadata: omitUndefined({
      hand: id,
      hand_instance: instance.id,
      hand_instance_name: instance.name,
      hand_role: role,
    }),
  })
}
const choiceOf = ({ model: { provider, model } }: Manifest) => ({ provider, model })

/** What the agent is told at each run. */
export function promptOf({ schedule, name }: Definition): string {
  return (
    schedule.prompt ??
    `Begin a run as ${name}. Read what earlier runs recorded (kv_list, kv_get), do the next piece of work by your ` +
      `instructions and settings, record the figures of your dashboard, and end with a short report.`
  )
}
