import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { Refusal } from 'svc/sdk'
import type * as v from 'valibot'
import type { Audit } from '../audit/contract.ts'
import { parseHand, readFolder } from './catalog.ts'
import type { Hand, HandCatalog } from './catalog.ts'
import type { Settings } from './config.ts'
import { DEFINITION_FILE, DefinitionProblem, SKILL_FILE } from './definition.ts'
import type { InstallHand } from './schema.ts'

export interface InstallerDeps {
  readonly catalog: HandCatalog
  readonly audit: Pick<Audit, 'write'>
  readonly settings: Settings
  /** `<home>/hands`. */
  readonly folder: string
}
type Body = v.InferOutput<typeof InstallHand>
type Found = Pick<Hand, 'toml' | 'definition' | 'skill'>

/** Writes a hand into the home. One that cannot be used is refused with file, line and key, and leaves nothing. */
export async function installHand(deps: InstallerDeps, body: Body) {
  const { toml, definition, skill } = await readBody(deps, body)
  const { id, name, description, category } = definition
  const path = join(deps.folder, id)
  const isThere = await exists(path)
  if (isThere && !body.update)
    throw new Refusal('conflict', `There is a hand "${id}" in ${deps.folder} already; send update: true to replace it`)
  await replaceFolder(deps.folder, id, { [DEFINITION_FILE]: toml, ...(skill !== '' && { [SKILL_FILE]: skill }) })
  await deps.audit.write({ event: 'hand_changed', details: `hand "${id}" was ${isThere ? 'replaced' : 'installed'}` })
  return { id, name, description, category, path }
}

async function readBody({ settings, catalog }: InstallerDeps, body: Body): Promise<Found> {
  const given = (['toml_content', 'source', 'slug'] as const).filter((key) => body[key] !== undefined)
  if (given.length !== 1)
    throw new Refusal('invalid_request', 'body: exactly one of toml_content, source and slug is needed')
  if (body.skill_content !== undefined && body.toml_content === undefined)
    throw new Refusal('invalid_request', 'skill_content: goes with toml_content only')
  const kind = body.toml_content !== undefined ? 'toml' : body.source !== undefined ? 'folder' : 'bundled'
  if (!settings.sources.includes(kind))
    throw new Refusal('forbidden', `plugins.hands.sources does not permit to install from: ${kind}`)
  try {
    if (body.toml_content !== undefined) return parseHand(undefined, body.toml_content, body.skill_content ?? '')
    return body.source === undefined ? await bundled(catalog, body.slug ?? '') : await folder(body.source)
  } catch (error) {
    if (!(error instanceof DefinitionProblem)) throw error
    throw new Refusal('invalid_request', error.message, {
      details: { line: error.line ?? null, key: error.key ?? null },
      cause: error,
    })
  }
}
async function bundled(catalog: HandCatalog, slug: string): Promise<Found> {
  const found = await catalog.bundled(slug)
  if (found === undefined) throw new Refusal('not_found', `No hand "${slug}" comes with svc`)
  if (found instanceof DefinitionProblem) throw found
  return found
}
async function folder(source: string): Promise<Found> {
  if (!isAbsolute(source)) throw new Refusal('invalid_request', 'source: must be an absolute path of a folder')
  const { content } = await readFolder(undefined, source)
  if (content instanceof DefinitionProblem) throw content
  return content
}

/** Whole or not there: it is written beside, and takes the name at the end. */
async function replaceFolder(root: string, id: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 })
  const [fresh, old] = [join(root, `.new-${id}`), join(root, `.old-${id}`)]
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { mode: 0o700 })
  for (const [name, text] of Object.entries(files))
    await writeFile(join(fresh, name), text, { mode: 0o600, flush: true })
  await rm(old, { recursive: true, force: true })
  if (await exists(join(root, id))) await rename(join(root, id), old)
  await rename(fresh, join(root, id))
  await rm(old, { recursive: true, force: true })
  const handle = await open(root)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}
