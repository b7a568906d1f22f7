import * as v from 'valibot'
import { runtimes } from './manifest/skill.ts'

export const SkillParams = v.object({ name: v.pipe(v.string(), v.minLength(1), v.maxLength(64)) })

export const SkillRow = v.object({
  name: v.string(),
  version: v.string(),
  description: v.string(),
  runtime: v.picklist(runtimes),
  bundled: v.boolean(),
  author: v.string(),
  license: v.string(),
  tags: v.array(v.string()),
  tools_count: v.number(),
  enabled: v.boolean(),
  has_prompt_context: v.boolean(),
  /** Replaces one that comes with svc. */
  overrides_bundled: v.boolean(),
  source: v.object({ type: v.picklist(['bundled', 'local']) }),
})
export type SkillRow = v.InferOutput<typeof SkillRow>

const Problem = v.object({
  name: v.string(),
  path: v.string(),
  file: v.string(),
  line: v.nullable(v.number()),
  key: v.nullable(v.string()),
  error: v.string(),
})
export type Problem = v.InferOutput<typeof Problem>
export const SkillList = v.object({ skills: v.array(SkillRow), total: v.number(), problems: v.array(Problem) })

export const SkillDetail = v.object({
  ...SkillRow.entries,
  path: v.string(),
  compatibility: v.string(),
  permissions: v.array(v.string()),
  needs_tools: v.array(v.string()),
  tools: v.array(
    v.object({
      /** As agents call it. */
      name: v.string(),
      /** As the skill calls it. */
      tool: v.string(),
      description: v.string(),
      input_schema: v.record(v.string(), v.unknown()),
    }),
  ),
  variables: v.array(
    v.object({ name: v.string(), description: v.string(), required: v.boolean(), has_value: v.boolean() }),
  ),
  text: v.string(),
  files: v.array(v.string()),
})
export const Reloaded = v.object({ status: v.literal('reloaded'), total: v.number(), problems: v.array(Problem) })
