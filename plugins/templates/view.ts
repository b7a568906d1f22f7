import type * as v from 'valibot'
import type { BadTemplate, Template } from './catalog.ts'
import type { TemplateDetail, TemplateRow } from './schema.ts'

/** A text below `[metadata]`; empty when there is none. */
const textOf = ({ manifest: { metadata } }: Template, key: string): string => {
  const value = metadata[key]
  return typeof value === 'string' ? value.trim() : ''
}

export function toRow(template: Template): TemplateRow {
  return {
    name: template.name,
    description: template.manifest.description,
    path: template.path,
    category: textOf(template, 'category') || 'other',
    tier: textOf(template, 'tier'),
    source: template.origin,
    overrides_bundled: template.overrides,
  }
}

export function toDetail(template: Template): v.InferOutput<typeof TemplateDetail> {
  const { name, description, module, tags, model, capabilities, skills } = template.manifest
  return {
    ...toRow(template),
    guide: textOf(template, 'guide'),
    skills: [...skills],
    manifest: { name, description, module, tags: [...tags], model: { ...model }, capabilities: { ...capabilities } },
    manifest_toml: template.toml,
    warnings: [...template.warnings],
  }
}

export function toProblem({ name, path, line, key, reason }: BadTemplate) {
  return { name, path, line: line ?? null, key: key ?? null, error: reason }
}
