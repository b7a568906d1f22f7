import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readFrontMatter, TEXT_FILE } from './front-matter.ts'
import type { SkillText } from './front-matter.ts'
import { SkillProblem } from './skill.ts'
import type { SkillManifest } from './skill.ts'
import { MANIFEST_FILE, readSkillToml } from './toml.ts'
import type { SkillToml } from './toml.ts'

/** Bytes of `SKILL.md` or `skill.toml`. */
export const MAX_MANIFEST_BYTES = 1_048_576

/**
 * Reads what a folder says of its skill: `SKILL.md`, `skill.toml`, or both, where the first has name, description and
 * text and the second runtime, tools and permissions. Throws `SkillProblem`.
 */
export async function readSkill(folder: string, folderName: string): Promise<SkillManifest> {
  return await toManifest(folderName, readManifest(folder, TEXT_FILE), readManifest(folder, MANIFEST_FILE))
}

/** The same of texts that are in memory. */
export async function toManifest(
  folderName: string,
  text: string | undefined,
  toml: string | undefined,
): Promise<SkillManifest> {
  const manifest = await parseManifest(text, toml)
  if (manifest.name === folderName) return manifest
  throw new SkillProblem(
    { file: text === undefined ? MANIFEST_FILE : TEXT_FILE, key: 'name' },
    `is "${manifest.name}", but the folder is "${folderName}": they must be the same`,
  )
}

/** The same, whatever the name of the folder. */
export async function parseManifest(text: string | undefined, toml: string | undefined): Promise<SkillManifest> {
  if (text === undefined && toml === undefined)
    throw new SkillProblem({ file: TEXT_FILE }, `is missing, and so is ${MANIFEST_FILE}: one of them has to be there`)
  const matter = text === undefined ? undefined : await readFrontMatter(text)
  const table = toml === undefined ? undefined : readSkillToml(toml)
  if (matter && table && matter.name !== table.name)
    throw new SkillProblem(
      { file: MANIFEST_FILE, key: 'skill.name' },
      `is "${table.name}", but ${TEXT_FILE} says "${matter.name}"`,
    )
  return combine(matter, table)
}

function combine(matter: SkillText | undefined, table: SkillToml | undefined): SkillManifest {
  const description = matter?.description ?? table?.description
  if (description === undefined) throw new SkillProblem({ file: MANIFEST_FILE, key: 'skill.description' }, 'is missing')
  const ofMatter = matter ?? NO_TEXT
  const { promptContext: inline, ...ofTable } = table ?? NO_TABLE
  const hasTags = ofMatter.tags.length > 0
  return {
    ...ofTable,
    name: matter?.name ?? ofTable.name,
    version: ofMatter.version ?? ofTable.version,
    description,
    author: ofMatter.author || ofTable.author,
    license: ofMatter.license || ofTable.license,
    compatibility: ofMatter.compatibility || ofTable.compatibility,
    tags: hasTags ? ofMatter.tags : ofTable.tags,
    needsTools: [...new Set([...ofMatter.allowedTools, ...ofTable.needsTools])],
    warnings: ofMatter.warnings,
    text: ofMatter.hasBody ? { file: TEXT_FILE, from: ofMatter.bodyFrom } : inline === '' ? undefined : { inline },
  }
}
const NO_TEXT: Omit<SkillText, 'name' | 'description'> = {
  license: '',
  compatibility: '',
  version: undefined,
  author: '',
  tags: [],
  allowedTools: [],
  bodyFrom: 0,
  hasBody: false,
  warnings: [],
}
const NO_TABLE: SkillToml = {
  name: '',
  version: '0.1.0',
  description: undefined,
  author: '',
  license: '',
  compatibility: '',
  tags: [],
  runtime: 'prompt_only',
  entry: '',
  packages: [],
  tools: [],
  variables: [],
  permissions: [],
  needsTools: [],
  promptContext: '',
}

/** `undefined` when there is none. Without waiting: small files, of which a start reads hundreds. */
function readManifest(folder: string, name: string): string | undefined {
  const path = join(folder, name)
  const facts = lstatSync(path, { throwIfNoEntry: false })
  if (!facts) return undefined
  if (!facts.isFile()) throw new SkillProblem({ file: name }, 'is no plain file')
  if (facts.size > MAX_MANIFEST_BYTES)
    throw new SkillProblem({ file: name }, `is larger than ${MAX_MANIFEST_BYTES} bytes`)
  return decodeManifest(name, readFileSync(path))
}
/** Throws `SkillProblem` for what is no UTF-8. */
export function decodeManifest(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw Object.assign(new SkillProblem({ file: name }, 'is no UTF-8 text'), { cause })
  }
}
