import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { openConfined, parseToml, TomlError } from 'svc/internal'
import { parse } from 'svc/sdk'
import { ai } from './ai.ts'
import { cloud } from './cloud.ts'
import { communication } from './communication.ts'
import { data } from './data.ts'
import { devtools } from './devtools.ts'
import { productivity } from './productivity.ts'
import { Template } from './template.ts'
import type { TemplateInput } from './template.ts'

export interface CatalogOptions {
  /** The folder with templates of the operator. */
  readonly folder: string
  readonly maxFiles: number
  readonly maxBytes: number
}
/** A file of the operator that is no template. */
export interface TemplateProblem {
  readonly file: string
  readonly message: string
}
export interface Catalog {
  readonly templates: ReadonlyMap<string, Template>
  readonly problems: readonly TemplateProblem[]
}

const shipped: readonly TemplateInput[] = [...devtools, ...productivity, ...communication, ...data, ...cloud, ...ai]
let parsed: readonly Template[] | undefined
export const builtInTemplates = (): readonly Template[] =>
  (parsed ??= shipped.map((template) => v.parse(Template, template)))

/** The templates that ship with svc, and those of the operator, which replace one with the same id. */
export async function readCatalog(options: CatalogOptions): Promise<Catalog> {
  const templates = new Map(builtInTemplates().map((template) => [template.id, template]))
  const problems: TemplateProblem[] = []
  const files = await templateFiles(options.folder)
  for (const file of files.slice(options.maxFiles))
    problems.push({ file, message: `not read: there are more than plugins.integrations.max_templates files` })
  for (const file of files.slice(0, options.maxFiles)) {
    const outcome = await readTemplate(file, options)
    if ('message' in outcome) problems.push({ file, message: outcome.message })
    else templates.set(outcome.template.id, outcome.template)
  }
  return { templates, problems }
}

async function templateFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return []
    throw error
  })
  return names.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted()
}

async function readTemplate(
  file: string,
  { folder, maxBytes }: CatalogOptions,
): Promise<{ readonly template: Template } | { readonly message: string }> {
  try {
    const text = await readText(folder, file, maxBytes)
    return { template: parse(Template, parseToml(text), join('integrations', file)) }
  } catch (error) {
    if (error instanceof TomlError)
      return { message: `not TOML, line ${error.line}: ${error.message.split('\n', 1)[0]}` }
    return { message: error instanceof Error ? error.message : String(error) }
  }
}

async function readText(folder: string, file: string, maxBytes: number): Promise<string> {
  const handle = await openConfined(folder, file, 'read')
  try {
    const { size } = await handle.stat()
    if (size > maxBytes) throw new Error(`larger than plugins.integrations.max_template_bytes (${maxBytes})`)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}
