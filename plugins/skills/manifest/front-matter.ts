import * as v from 'valibot'
import { suggest, unknownKeys } from 'svc/internal'
import { isObject } from 'svc/sdk'
import { check, problemAt } from './check.ts'
import type { Source } from './check.ts'
import { SKILL_NAME, SkillProblem } from './skill.ts'
import { withoutUnseen } from './unseen.ts'

export const TEXT_FILE = 'SKILL.md'
const MAX_DEPTH = 20
/** Characters of a description. */
const MAX_DESCRIPTION = 1024
/** Keys of no effect that are told. */
const MAX_WARNINGS = 20

const text = (max: number) => v.pipe(v.string('must be a text'), v.maxLength(max, `at most ${max} characters`))
const List = v.union([
  v.pipe(
    v.string(),
    v.transform((list) => list.split(/[\s,]+/).filter((word) => word !== '')),
  ),
  v.array(v.string()),
])
const Tags = v.union([
  v.pipe(
    v.string(),
    v.transform((list) =>
      list
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== ''),
    ),
  ),
  v.array(v.string()),
])

export const Name = v.pipe(
  v.string('must be a text'),
  v.regex(SKILL_NAME, 'must be 1 to 64 lower-case letters, digits, "-" and "_", and begin with a letter or digit'),
)
export const Description = v.pipe(
  text(MAX_DESCRIPTION),
  v.transform((words) => withoutUnseen(words).replace(/\s+/g, ' ').trim()),
  v.minLength(1, 'must not be empty: it tells the model when to use the skill'),
  v.check((words) => !/\p{Cc}/u.test(words), 'must not hold control characters'),
)

/** The keys of the Agent Skills format (agentskills.io), and those that other systems add. */
const FrontMatter = v.object({
  name: Name,
  description: Description,
  license: v.optional(text(500), ''),
  compatibility: v.optional(text(500), ''),
  metadata: v.optional(v.record(v.string(), v.unknown()), {}),
  'allowed-tools': v.optional(List, []),
  version: v.optional(text(64)),
  author: v.optional(text(256)),
  tags: v.optional(Tags),
})

/** That of other systems, whose names and descriptions need not fit ours. */
const ForeignFrontMatter = v.object({
  description: v.optional(v.string()),
  license: v.fallback(text(500), ''),
  metadata: v.fallback(v.record(v.string(), v.unknown()), {}),
  'allowed-tools': v.fallback(List, []),
  version: v.fallback(v.optional(text(64)), undefined),
  author: v.fallback(text(256), ''),
  tags: v.fallback(Tags, []),
})
export interface SkillText {
  readonly name: string
  readonly description: string
  readonly license: string
  readonly compatibility: string
  readonly version: string | undefined
  readonly author: string
  readonly tags: readonly string[]
  readonly allowedTools: readonly string[]
  /** Where the text for the model begins. */
  readonly bodyFrom: number
  readonly hasBody: boolean
  /** One for each key that has no effect: the format allows others, and one may be misspelt. */
  readonly warnings: readonly string[]
}

/** Reads a `SKILL.md`. Throws `SkillProblem`. Every value is a text: `1.0` stays `1.0`. */
export async function readFrontMatter(content: string): Promise<SkillText> {
  const { source, bodyFrom } = split(content)
  const table = await parseYaml(source)
  const matter = check(FrontMatter, table, source)
  const { metadata, 'allowed-tools': allowedTools } = matter
  const ofMetadata = (key: string): string | undefined => {
    const value = metadata[key]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const tags = v.safeParse(Tags, metadata['tags'])
  return {
    name: matter.name,
    description: matter.description,
    license: matter.license,
    compatibility: matter.compatibility,
    version: matter.version ?? ofMetadata('version'),
    author: matter.author ?? ofMetadata('author') ?? '',
    tags: matter.tags ?? (tags.success ? tags.output : []),
    allowedTools,
    bodyFrom,
    hasBody: content.slice(bodyFrom).trim() !== '',
    warnings: unknownKeys(FrontMatter, table)
      .slice(0, MAX_WARNINGS)
      .map(({ path, nearest }) => problemAt(source, path, `is unknown and has no effect${suggest(nearest)}`).message),
  }
}

export interface ForeignText {
  readonly description: string | undefined
  readonly license: string
  readonly version: string | undefined
  readonly author: string
  readonly tags: readonly string[]
  readonly allowedTools: readonly string[]
  readonly metadata: Readonly<Record<string, unknown>>
  readonly body: string
}
/** Reads a `SKILL.md` of another system. Throws `SkillProblem` when it has no front matter in YAML. */
export async function readForeignText(content: string): Promise<ForeignText> {
  const { source, bodyFrom } = split(content)
  const { 'allowed-tools': allowedTools, ...matter } = check(ForeignFrontMatter, await parseYaml(source), source)
  return {
    ...matter,
    description: cleanDescription(matter.description ?? '').slice(0, MAX_DESCRIPTION) || undefined,
    version: matter.version,
    allowedTools,
    body: content.slice(bodyFrom).trim(),
  }
}

function split(content: string): { readonly source: Source; readonly bodyFrom: number } {
  const found = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(content)
  if (found) return { source: { file: TEXT_FILE, text: found[1] ?? '', firstLine: 2 }, bodyFrom: found[0].length }
  throw new SkillProblem(
    { file: TEXT_FILE, line: 1 },
    'must begin with YAML between two lines of "---", with name and description',
  )
}
const cleanDescription = (words: string): string =>
  withoutUnseen(words)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()

async function parseYaml(source: Source): Promise<unknown> {
  const { FAILSAFE_SCHEMA, load, YAMLException } = await import('js-yaml')
  try {
    // No types but texts, lists and tables; no aliases, which make small files large.
    const value = load(source.text, { schema: FAILSAFE_SCHEMA, maxDepth: MAX_DEPTH, maxAliases: 0 })
    return isObject(value) ? value : {}
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const line = source.firstLine + (error.mark?.line ?? 0)
    throw new SkillProblem(
      { file: source.file, line },
      `${error.reason}; quote a text that holds ": " or begins with a sign`,
    )
  }
}
