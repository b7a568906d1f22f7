import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { line } from 'svc/sdk'
import { runtimes, SKILL_NAME } from './manifest/skill.ts'

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

export const SkillVariable = v.object({
  name: v.string(),
  description: v.string(),
  required: v.boolean(),
  has_value: v.boolean(),
  /** Where its value is from. */
  source: v.nullable(v.picklist(['vault', 'environment', 'default'])),
})
export const SkillDetail = v.object({
  ...SkillRow.entries,
  path: v.string(),
  /** What has no effect in its files, with file, line and key. */
  warnings: v.array(v.string()),
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
  variables: v.array(SkillVariable),
  text: v.string(),
  files: v.array(v.string()),
})
export const Reloaded = v.object({ status: v.literal('reloaded'), total: v.number(), problems: v.array(Problem) })

const Permissions = v.pipe(v.array(v.string()), v.maxLength(200))
export const InstallRequest = v.object({
  source: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
  verify: v.optional(v.boolean(), true),
  sha256: orAbsent(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits'))),
  signature: orAbsent(v.pipe(v.string(), v.maxLength(256))),
  accept: v.optional(Permissions, []),
  accept_permissions: v.optional(v.boolean(), false),
  update: v.optional(v.boolean(), false),
  dry_run: v.optional(v.boolean(), false),
})
export type InstallRequest = v.InferOutput<typeof InstallRequest>
export const InstallResult = v.object({
  status: v.picklist(['installed', 'updated', 'checked']),
  skill: v.string(),
  version: v.string(),
  description: v.string(),
  runtime: v.picklist(runtimes),
  sha256: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: v.array(v.string()),
  warnings: v.array(v.object({ severity: v.picklist(['critical', 'warning', 'info']), message: v.string() })),
  /** The file of another system that its manifest was made of. */
  converted_from: v.nullable(v.string()),
  tool_translations: v.array(v.object({ from: v.string(), to: v.string() })),
})
export const UninstallRequest = v.object({ name: SkillParams.entries.name })
export const Uninstalled = v.object({ status: v.literal('uninstalled'), skill: v.string() })
export const CreateSkill = v.object({
  name: v.pipe(v.string(), v.regex(SKILL_NAME, 'must be 1 to 64 lower-case letters, digits, "-" and "_"')),
  runtime: v.optional(v.picklist(['prompt_only', 'python', 'node', 'shell']), 'prompt_only'),
  description: line(1024),
  tags: v.optional(v.pipe(v.array(line(64)), v.maxLength(20)), []),
  prompt_context: orAbsent(v.pipe(v.string(), v.maxLength(200_000))),
})
export type CreateSkill = v.InferOutput<typeof CreateSkill>
export const Created = v.object({ status: v.literal('created'), skill: v.string(), path: v.string() })
export const Tested = v.object({
  skill: v.string(),
  passed: v.number(),
  failed: v.number(),
  results: v.array(v.object({ name: v.string(), passed: v.boolean(), message: v.string() })),
})
