import * as v from 'valibot'
import type { DaemonClient } from 'svc/cli'

export const TemplateItem = v.looseObject({
  name: v.string(),
  description: v.string(),
  path: v.string(),
  category: v.string(),
  tier: v.string(),
  source: v.string(),
})
const Problem = v.looseObject({
  path: v.string(),
  line: v.nullable(v.number()),
  key: v.nullable(v.string()),
  error: v.string(),
})
const List = v.looseObject({ templates: v.array(TemplateItem), total: v.number(), problems: v.array(Problem) })
export type TemplateList = v.InferOutput<typeof List>

export function listTemplates(client: DaemonClient): Promise<TemplateList> {
  return client.call('GET', '/api/templates', List)
}
