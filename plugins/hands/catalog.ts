import { lstat, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { findNearest, messageOf, suggest } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import {
  checkHosts,
  DEFINITION_FILE,
  DefinitionProblem,
  MAX_DEFINITION_BYTES,
  readDefinition,
  SKILL_FILE,
} from './definition.ts'
import type { Definition } from './definition.ts'

const MAX_SKILL_BYTES = 65_536

export interface Hand {
  readonly id: string
  /** The folder. */
  readonly path: string
  readonly origin: 'bundled' | 'local'
  readonly toml: string
  readonly definition: Definition
  /** Of its SKILL.md; empty when there is none. */
  readonly skill: string
}
/** A folder that is no usable hand. */
export interface BadHand {
  readonly id: string
  readonly path: string
  readonly problem: DefinitionProblem
}
export interface Roots {
  /** Those that come with svc, and `<home>/hands`, whose folders replace those of the same name. */
  readonly bundled: string
  readonly local: string
}
type Content = Pick<Hand, 'toml' | 'definition' | 'skill'> | DefinitionProblem

/** The hands there are at the moment of each question: a file that was edited counts at once. */
export class HandCatalog {
  readonly #roots: Roots
  /** What was read of a folder, until its files change. */
  #read: ReadonlyMap<string, { readonly stamp: string; readonly content: Content }> = new Map()
  constructor(roots: Roots) {
    this.#roots = roots
  }

  /** By id. */
  async list(): Promise<{ readonly hands: readonly Hand[]; readonly bad: readonly BadHand[] }> {
    const { bundled, local } = this.#roots
    const [shipped, own] = await Promise.all([namesIn(bundled), namesIn(local)])
    const folders = [
      ...shipped
        .filter((id) => !own.includes(id))
        .map((id) => ({ id, path: join(bundled, id), origin: 'bundled' as const })),
      ...own.map((id) => ({ id, path: join(local, id), origin: 'local' as const })),
    ].toSorted((one, other) => (one.id < other.id ? -1 : 1))
    const read = new Map(
      await Promise.all(folders.map(async (folder) => [folder.path, await this.#readOnce(folder)] as const)),
    )
    this.#read = read
    const hands: Hand[] = []
    const bad: BadHand[] = []
    for (const folder of folders) {
      const content = read.get(folder.path)?.content
      if (content instanceof DefinitionProblem) bad.push({ ...folder, problem: content })
      else if (content) hands.push({ ...folder, ...content })
    }
    return { hands, bad }
  }

  async find(id: string): Promise<Hand | undefined> {
    return (await this.list()).hands.find((hand) => hand.id === id)
  }
  /** Throws `not_found` with the nearest id, and `conflict` that says what is wrong with the file. */
  async require(id: string): Promise<Hand> {
    const { hands, bad } = await this.list()
    const found = hands.find((hand) => hand.id === id)
    if (found) return found
    const broken = bad.find((each) => each.id === id)
    if (broken)
      throw new Refusal('conflict', `The hand "${id}" cannot be used: ${broken.problem.message}`, {
        details: { path: broken.path, line: broken.problem.line ?? null, key: broken.problem.key ?? null },
      })
    const ids = hands.map((hand) => hand.id)
    const nearest = suggest(findNearest(id, ids)) || `; ${commandLine('hand list')} names them`
    throw new Refusal('not_found', `There is no hand "${id}"${nearest}`)
  }
  /** One that comes with svc, also where one of the home replaces it. */
  async bundled(id: string): Promise<Content | undefined> {
    if (!(await namesIn(this.#roots.bundled)).includes(id)) return undefined
    return (await readFolder(id, join(this.#roots.bundled, id))).content
  }

  async #readOnce({ id, path }: { readonly id: string; readonly path: string }) {
    const stamp = await stampOf(path)
    const known = this.#read.get(path)
    return known?.stamp === stamp && stamp !== '' ? known : readFolder(id, path)
  }
}

/** What is in a folder; a problem when it is no usable hand. */
export async function readFolder(
  id: string | undefined,
  path: string,
): Promise<{ readonly stamp: string; readonly content: Content }> {
  const stamp = await stampOf(path)
  try {
    const file = join(path, DEFINITION_FILE)
    // It would be used wherever it leads, and change with what is there.
    if ((await lstat(path)).isSymbolicLink())
      throw new DefinitionProblem(
        undefined,
        undefined,
        'is in a link to a folder: copy the folder, or install the hand',
      )
    const facts = await lstat(file)
    if (!facts.isFile() || facts.nlink > 1 || facts.size > MAX_DEFINITION_BYTES)
      return {
        stamp,
        content: new DefinitionProblem(
          undefined,
          undefined,
          `is no plain file of ${MAX_DEFINITION_BYTES} bytes at most`,
        ),
      }
    const toml = await readFile(file, 'utf8')
    return { stamp, content: parseHand(id, toml, await readSkill(path)) }
  } catch (error) {
    if (error instanceof DefinitionProblem) return { stamp, content: error }
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return { stamp, content: new DefinitionProblem(undefined, undefined, isMissing ? 'is missing' : messageOf(error)) }
  }
}

/** Throws `DefinitionProblem`. `id`: the name of its folder, where it has one. */
export function parseHand(id: string | undefined, toml: string, skill: string) {
  const definition = readDefinition(toml)
  checkHosts(definition, toml)
  if (id !== undefined && definition.id !== id)
    throw new DefinitionProblem(undefined, 'id', `"${definition.id}" is not the name of its folder, "${id}"`)
  if (Buffer.byteLength(skill) > MAX_SKILL_BYTES || definition.agent.system_prompt.length + skill.length > 60_000)
    throw new DefinitionProblem(undefined, SKILL_FILE, 'and system_prompt have more than 60000 characters')
  return { toml, definition, skill }
}

async function readSkill(path: string): Promise<string> {
  try {
    const file = join(path, SKILL_FILE)
    const facts = await lstat(file)
    if (!facts.isFile() || facts.nlink > 1) throw new DefinitionProblem(undefined, SKILL_FILE, 'is no plain file')
    if (facts.size > MAX_SKILL_BYTES)
      throw new DefinitionProblem(undefined, SKILL_FILE, `has more than ${MAX_SKILL_BYTES} bytes`)
    return await readFile(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}

async function stampOf(path: string): Promise<string> {
  const stamps = await Promise.all(
    [DEFINITION_FILE, SKILL_FILE].map(async (name) => {
      try {
        const { mtimeMs, size, ino } = await stat(join(path, name))
        return `${mtimeMs} ${size} ${ino}`
      } catch {
        return '' /* It is missing, or cannot be read: reading says so. */
      }
    }),
  )
  return stamps[0] === '' ? '' : stamps.join(',')
}
/** Names of the folders in a folder; none when it does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
      .map(({ name }) => name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
