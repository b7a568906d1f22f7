import { renderToml } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Hand } from './catalog.ts'

/** The manifest of the agent of an instance: what the definition grants and nothing else. */
export function manifestOf(
  { definition, skill }: Pick<Hand, 'definition' | 'skill'>,
  instance: { readonly id: string; readonly name: string },
  agentName: string,
): string {
  const { agent, capabilities, id, category, skills, mcp_servers: servers, tools, version } = definition
  const { network, shell, agent_message } = capabilities
  return renderToml({
    name: agentName,
    version,
    description: agent.description === '' ? definition.description : agent.description,
    author: 'hand',
    tags: ['hand', category],
    skills: [...skills],
    // Empty lists would mean all of them.
    skills_disabled: skills.length === 0,
    mcp_servers: [...servers],
    mcp_disabled: servers.length === 0,
    model: omitUndefined({
      provider: agent.provider,
      model: agent.model,
      api_key_env: agent.api_key_env,
      base_url: agent.base_url,
      max_tokens: agent.max_tokens,
      temperature: agent.temperature,
      system_prompt: skill === '' ? agent.system_prompt : `${agent.system_prompt.trimEnd()}\n\n${skill}`,
    }),
    capabilities: { tools: [...tools], network: [...network], shell: [...shell], agent_message: [...agent_message] },
    autonomous: { max_iterations: agent.max_iterations },
    metadata: { hand: id, hand_instance: instance.id, hand_instance_name: instance.name },
  })
}

/** What the agent is told at each run. */
export function promptOf({ schedule, name }: Hand['definition']): string {
  return (
    schedule.prompt ??
    `Begin a run as ${name}. Read what earlier runs recorded (kv_list, kv_get), do the next piece of work by your ` +
      `instructions and settings, record the figures of your dashboard, and end with a short report.`
  )
}
