import * as v from 'valibot'
import { clientArgs, escapeControls, renderFacts } from 'svc/cli'

export const ExternalAgent = v.looseObject({
  id: v.string(),
  name: v.string(),
  url: v.string(),
  description: v.string(),
  version: v.string(),
  provider: v.string(),
  status: v.picklist(['pending', 'trusted']),
  source: v.string(),
  skills: v.array(v.looseObject({ id: v.string(), name: v.string(), description: v.string() })),
  endpoints: v.array(v.looseObject({ url: v.string(), protocol: v.string(), version: v.string() })),
  security: v.array(v.string()),
  signature: v.looseObject({ state: v.string(), keys: v.array(v.string()) }),
  warnings: v.array(v.string()),
  fingerprint: v.nullable(v.string()),
  difference: v.array(v.looseObject({ field: v.string() })),
})
export type ExternalAgent = v.InferOutput<typeof ExternalAgent>
export const Discovered = v.looseObject({ status: v.string(), agent: ExternalAgent })
export const SentTask = v.looseObject({
  id: v.string(),
  task_id: v.string(),
  status: v.string(),
  agent_name: v.string(),
  session_id: v.nullable(v.string()),
  error: v.nullable(v.string()),
  result: v.nullable(v.looseObject({ parts: v.array(v.looseObject({ text: v.string() })) })),
})
export type SentTask = v.InferOutput<typeof SentTask>

export const agentPath = (text: string): string => `/api/a2a/agents/${encodeURIComponent(text)}`
export const agentArgs = {
  agent: { type: 'positional', required: true, description: 'Name, address or id of the agent' },
  ...clientArgs,
} as const

/** Its card, for a person who decides whether to trust it. */
export function describeAgent(agent: ExternalAgent): string {
  const { signature, skills, endpoints, difference } = agent
  const facts: (readonly [string, string])[] = [
    ['name', agent.name],
    ['card', agent.url],
    ['messages go to', endpoints.map(({ url, protocol, version }) => `${url} (${protocol} ${version})`).join(', ')],
    ['description', agent.description],
    ['maker', agent.provider],
    ['version', agent.version],
    ['signature', [signature.state, ...signature.keys].join(', ')],
    ['wants', agent.security.join(', ')],
    ['skills', skills.map(({ name, description }) => `${name}: ${description}`).join('; ')],
    ['changed', difference.map(({ field }) => field).join(', ')],
    ['state', agent.status],
  ]
  const shown = facts.filter(([, text]) => text !== '').map(([name, text]) => [name, escapeControls(text)] as const)
  const warnings = agent.warnings.map((text) => `warning: ${escapeControls(text)}\n`).join('')
  return `${renderFacts(shown)}\n${warnings}`.trimEnd()
}

export function describeTask({ status, agent_name: agent, task_id: id, result, error, session_id: session }: SentTask) {
  const text = result?.parts.map((part) => part.text).join('\n') ?? ''
  const head = `${agent}: ${status} (task ${id}${session === null ? '' : `, session ${session}`})`
  return [escapeControls(head), error === null ? '' : `error: ${escapeControls(error)}`, text && `\n${printable(text)}`]
    .filter((line) => line !== '')
    .join('\n')
}
/** Another system wrote it: line breaks stay, what moves the cursor does not. */
const printable = (text: string): string => escapeControls(text, true)
