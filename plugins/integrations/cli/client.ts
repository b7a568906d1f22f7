import * as v from 'valibot'
import { clientArgs } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const text = v.nullable(v.string())
export const Integration = v.looseObject({
  id: v.string(),
  template: v.string(),
  name: v.string(),
  category: v.string(),
  status: v.string(),
  tool_count: v.number(),
  installed_at: v.string(),
  error: text,
})
export type Integration = v.InferOutput<typeof Integration>
export const Variable = v.looseObject({
  name: v.string(),
  label: v.string(),
  help: v.string(),
  is_secret: v.boolean(),
  get_url: text,
  required: v.boolean(),
  for_login: v.boolean(),
  default: text,
})
export type Variable = v.InferOutput<typeof Variable>
export const Entry = v.looseObject({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  category: v.string(),
  status: v.string(),
  required_env: v.array(Variable),
  has_oauth: v.boolean(),
  needs_login: v.boolean(),
  setup_instructions: v.string(),
})
export type Entry = v.InferOutput<typeof Entry>
const Available = v.looseObject({
  integrations: v.array(Entry),
  problems: v.array(v.looseObject({ file: v.string(), message: v.string() })),
})
export type Available = v.InferOutput<typeof Available>

export const integrationArgs = {
  id: { type: 'positional', required: true, description: 'Id of the integration' },
  ...clientArgs,
} as const

export const pathOf = (id: string): string => `/api/integrations/${encodeURIComponent(id)}`
export const listIntegrations = (client: DaemonClient) =>
  client.call('GET', '/api/integrations', v.looseObject({ installed: v.array(Integration) }))
export function listAvailable(client: DaemonClient, query: Readonly<Record<string, string>> = {}): Promise<Available> {
  const search = new URLSearchParams(query).toString()
  return client.call('GET', `/api/integrations/available${search === '' ? '' : `?${search}`}`, Available)
}
