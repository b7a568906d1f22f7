import { Refusal } from 'svc/sdk'

/** The agent a request names. Throws `invalid_request` when it names two. */
export function readAgentName(body: {
  readonly agent?: string | undefined
  readonly agent_id?: string | undefined
  readonly agent_name?: string | undefined
}): string | undefined {
  const given = [body.agent, body.agent_id, body.agent_name].filter((name) => name !== undefined)
  if (new Set(given).size > 1)
    throw new Refusal('invalid_request', 'agent: agent, agent_id and agent_name differ; give one of them')
  return given[0]
}
