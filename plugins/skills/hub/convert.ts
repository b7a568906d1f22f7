import * as v from 'valibot'
import { renderToml } from 'svc/internal'
import type { ArchivedFile } from 'svc/internal'
import { isObject, readFailedJson, Refusal } from 'svc/sdk'
import type { Warning } from '../install/scan.ts'
import { readForeignText, TEXT_FILE } from '../manifest/front-matter.ts'
import { SkillProblem } from '../manifest/skill.ts'
import { MANIFEST_FILE } from '../manifest/toml.ts'
import { ToolNames } from './tool-names.ts'
import type { Translation } from './tool-names.ts'

export interface Conversion {
  readonly files: readonly ArchivedFile[]
  /** `undefined` for a skill in our own format, which stays as it is. */
  readonly from: 'SKILL.md' | undefined
  readonly translations: readonly Translation[]
  readonly warnings: readonly Warning[]
}
interface Origin {
  readonly slug: string
  readonly version: string
}

const list = v.fallback(v.array(v.pipe(v.string(), v.maxLength(256))), [])
/** What OpenClaw reads below `metadata.openclaw`; older skills have it below `metadata` itself. */
const Foreign = v.object({
  requires: v.fallback(v.object({ bins: list, anyBins: list, env: list }), { bins: [], anyBins: [], env: [] }),
  commands: v.fallback(
    v.array(
      v.object({
        name: v.string(),
        description: v.optional(v.string(), ''),
        dispatch: v.optional(v.object({ type: v.optional(v.string()), tool: v.optional(v.string()) })),
      }),
    ),
    [],
  ),
})
const Package = v.object({ main: v.pipe(v.string(), v.minLength(1)) })

/**
 * Makes a `skill.toml` of a `SKILL.md` of another system: its text as `prompt_context` with the names of our tools.
 * Throws `invalid_request` for one that cannot be read.
 */
export async function convert(files: readonly ArchivedFile[], { slug, version }: Origin): Promise<Conversion> {
  const text = files.find(({ name }) => name === TEXT_FILE)?.bytes.toString('utf8')
  if (text === undefined || files.some(({ name }) => name === MANIFEST_FILE))
    return { files, from: undefined, translations: [], warnings: [] }
  const read = await readForeign(text)
  const { requires, commands } = v.parse(Foreign, foreignPart(read.metadata))
  const tools = new ToolNames()
  const speaksOf = [...read.allowedTools, ...commands.flatMap(({ dispatch }) => dispatch?.tool ?? [])]
  const needs = [...new Set(speaksOf.map((name) => tools.translate(name)))]
  const program = programOf(files, commands)
  const manifest = {
    skill: {
      name: toName(slug),
      version: read.version || version || '0.1.0',
      description: read.description ?? `The skill ${slug}.`,
      author: read.author,
      license: read.license,
      tags: read.tags.slice(0, 20),
      compatibility: needsText(requires),
    },
    runtime: program === undefined ? { type: 'prompt_only' } : { type: 'node', entry: program.entry },
    ...(program && { tools: { provided: program.tools } }),
    requirements: { tools: needs.slice(0, 50) },
    ...(program && { config: Object.fromEntries(requires.env.map((name) => [name, { required: true }])) }),
    source: { type: 'claw_hub', slug, version },
    prompt_context: tools.inText(read.body),
  }
  return {
    files: [
      ...files.filter(({ name }) => name !== TEXT_FILE),
      { name: MANIFEST_FILE, bytes: Buffer.from(renderToml(manifest)) },
    ],
    from: TEXT_FILE,
    translations: tools.translations,
    warnings: warningsOf(files, program !== undefined),
  }
}

/** The name of a folder of ours. */
export const toName = (slug: string): string =>
  slug
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, 64) || 'skill'

async function readForeign(text: string) {
  try {
    return await readForeignText(text)
  } catch (error) {
    if (!(error instanceof SkillProblem)) throw error
    throw new Refusal('invalid_request', error.message, { cause: error })
  }
}

function foreignPart(metadata: Readonly<Record<string, unknown>>): unknown {
  const part = metadata['openclaw'] ?? metadata['clawdbot'] ?? metadata['clawdis']
  return isObject(part) ? part : metadata
}

function needsText({ bins, anyBins, env }: v.InferOutput<typeof Foreign>['requires']): string {
  return [
    bins.length > 0 && `the programs ${bins.join(', ')}`,
    anyBins.length > 0 && `one of the programs ${anyBins.join(', ')}`,
    env.length > 0 && `the variables ${env.join(', ')}`,
  ]
    .filter((part) => part !== false)
    .join('; ')
    .slice(0, 500)
}

/** A package with a file that runs, and commands that call it. */
function programOf(files: readonly ArchivedFile[], commands: v.InferOutput<typeof Foreign>['commands']) {
  const source = files.find(({ name }) => name === 'package.json')
  const main = source && v.safeParse(Package, readFailedJson(source.bytes.toString('utf8')))
  if (!main?.success || commands.length === 0) return undefined
  const entry = main.output.main.replace(/^\.\//, '')
  if (!files.some(({ name }) => name === entry)) return undefined
  const provided = commands.map(({ name, description }) => ({
    name: toName(name).replaceAll('-', '_').replace(/^\d/, 'c$&'),
    description: description.slice(0, 1024) || name,
    input_schema: {},
  }))
  return { entry, tools: provided }
}

function warningsOf(files: readonly ArchivedFile[], runs: boolean): readonly Warning[] {
  const isPackage = files.some(({ name }) => name === 'package.json')
  return isPackage && !runs
    ? [{ severity: 'info', message: 'its package.json names nothing that can be run: the skill is a text' }]
    : []
}
