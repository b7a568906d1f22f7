import * as v from 'valibot'

export const TemplateParams = v.object({
  name: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][\w.-]{0,127}$/, 'Invalid template name')),
})

export const TemplateRow = v.object({
  name: v.string(),
  description: v.string(),
  path: v.string(),
  category: v.string(),
  /** Of the models that suit it; empty when the template does not say. */
  tier: v.string(),
  source: v.picklist(['bundled', 'local']),
  /** Replaces one that comes with svc. */
  overrides_bundled: v.boolean(),
})
export type TemplateRow = v.InferOutput<typeof TemplateRow>

const Problem = v.object({
  name: v.string(),
  path: v.string(),
  line: v.nullable(v.number()),
  key: v.nullable(v.string()),
  error: v.string(),
})
export const TemplateList = v.object({
  templates: v.array(TemplateRow),
  total: v.number(),
  problems: v.array(Problem),
})

export const TemplateDetail = v.object({
  ...TemplateRow.entries,
  guide: v.string(),
  skills: v.array(v.string()),
  manifest: v.object({
    name: v.string(),
    description: v.string(),
    module: v.string(),
    tags: v.array(v.string()),
    model: v.record(v.string(), v.unknown()),
    capabilities: v.record(v.string(), v.unknown()),
  }),
  manifest_toml: v.string(),
  warnings: v.array(v.string()),
})
