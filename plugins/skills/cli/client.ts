import * as v from 'valibot'
import { renderTable } from 'svc/cli'

const names = v.optional(v.array(v.string()), [])
export const Skill = v.looseObject({
  name: v.string(),
  version: v.string(),
  description: v.string(),
  runtime: v.string(),
  bundled: v.boolean(),
  enabled: v.boolean(),
  tags: names,
  tools_count: v.number(),
})
export type Skill = v.InferOutput<typeof Skill>
export const SkillList = v.looseObject({
  skills: v.array(Skill),
  total: v.number(),
  problems: v.optional(v.array(v.looseObject({ path: v.string(), error: v.string() })), []),
})

/** A line for each skill. */
export function renderSkills(skills: readonly Skill[]): string {
  return renderTable(
    ['NAME', 'VERSION', 'RUNTIME', 'FROM', 'ENABLED', 'DESCRIPTION'],
    skills.map(({ name, version, runtime, bundled, enabled, description }) => [
      name,
      version,
      runtime,
      bundled ? 'svc' : 'home',
      enabled ? 'yes' : 'no',
      description.length > 60 ? `${description.slice(0, 59)}…` : description,
    ]),
  )
}
