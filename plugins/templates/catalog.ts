import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findNearest, lineOfKey, messageOf, suggest } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import { TemplateFailed } from '../agents/contract.ts'
import type { Agents, Manifest } from '../agents/contract.ts'

const ENDING = '.toml'
const NAME = /^[A-Za-z0-9][\w.-]{0,127}$/
/** A larger file is not read. */
const MAX_TEMPLATE_BYTES = 1_048_576

export interface Template {
  /** Of the file, without its ending. */
  readonly name: string
  readonly path: string
  readonly origin: 'bundled' | 'local'
  readonly overrides: boolean
  readonly toml: string
  readonly manifest: Manifest
  readonly warnings: readonly string[]
}
/** A file that is no usable template. */
export interface BadTemplate {
  readonly name: string
  readonly path: string
  /** The first line is 1. */
  readonly line: number | undefined
  readonly key: string | undefined
  readonly reason: string
}
export interface TemplatesFound {
  readonly templates: readonly Template[]
  readonly bad: readonly BadTemplate[]
}
export interface CatalogDeps {
  /** Those that come with svc, and `<home>/templates`, whose files replace those of the same name. */
  readonly roots: { readonly bundled: string; readonly local: string }
  readonly readManifest: Agents['readManifest']
}
interface File {
  readonly name: string
  readonly path: string
  readonly origin: Template['origin']
  readonly overrides: boolean
}
type Content = Pick<Template, 'toml' | 'manifest' | 'warnings'> | Omit<BadTemplate, 'name' | 'path'>

/** The templates there are at the moment of each question: a file that was edited counts at once. */
export class TemplateCatalog {
  readonly #deps: CatalogDeps
  /** What was read of a file, by its path, until the file changes. */
  #read: ReadonlyMap<string, { readonly stamp: string; readonly content: Content }> = new Map()
  constructor(deps: CatalogDeps) {
    this.#deps = deps
  }

  /** By name. */
  async list(): Promise<TemplatesFound> {
    const { bundled, local } = this.#deps.roots
    const [shipped, own] = await Promise.all([namesIn(bundled), namesIn(local)])
    const files = [
      ...shipped
        .filter((name) => !own.includes(name))
        .map((name): File => ({ name, path: pathOf(bundled, name), origin: 'bundled', overrides: false })),
      ...own.map((name): File => ({
        name,
        path: pathOf(local, name),
        origin: 'local',
        overrides: shipped.includes(name),
      })),
    ].toSorted((one, other) => (one.name < other.name ? -1 : 1))
    const read = new Map(await Promise.all(files.map(async (file) => [file.path, await this.#readOnce(file)] as const)))
    this.#read = read
    const templates: Template[] = []
    const bad: BadTemplate[] = []
    for (const file of files) {
      const content = read.get(file.path)?.content
      if (content === undefined) continue
      if ('reason' in content) bad.push({ name: file.name, path: file.path, ...content })
      else templates.push({ ...file, ...content })
    }
    return { templates, bad }
  }

  /** Throws `template_not_found` with the nearest name, and `template_failed` that says what is wrong with the file. */
  async require(name: string): Promise<Template> {
    const { templates, bad } = await this.list()
    const found = templates.find((template) => template.name === name)
    if (found) return found
    const broken = bad.find((each) => each.name === name)
    if (broken)
      throw new Refusal(TemplateFailed, `The template "${name}" cannot be used: ${describeProblem(broken)}`, {
        details: { path: broken.path, line: broken.line ?? null, key: broken.key ?? null },
      })
    const names = templates.map((template) => template.name)
    throw new Refusal(
      'template_not_found',
      `No template ${name}${suggest(findNearest(name, names)) || `; ${commandLine('template list')} names them`}`,
    )
  }

  async #readOnce(file: File): Promise<{ readonly stamp: string; readonly content: Content }> {
    try {
      // What a link leads to may be for nobody who lists templates.
      const facts = await lstat(file.path)
      const stamp = `${facts.mtimeMs} ${facts.size} ${facts.ino}`
      const known = this.#read.get(file.path)
      if (known?.stamp === stamp) return known
      if (!facts.isFile() || facts.nlink > 1) return { stamp, content: problem('is a link, or no plain file') }
      if (facts.size > MAX_TEMPLATE_BYTES)
        return { stamp, content: problem(`has ${facts.size} bytes, more than ${MAX_TEMPLATE_BYTES}`) }
      return { stamp, content: this.#parse(file.name, await readFile(file.path, 'utf8')) }
    } catch (error) {
      return { stamp: '', content: problem(messageOf(error)) }
    }
  }

  #parse(name: string, toml: string): Content {
    if (!NAME.test(name))
      return problem(
        'the name of the file must begin with a letter or digit and hold letters, digits, "_", "-" and "."',
      )
    try {
      const { manifest, warnings, unknown } = this.#deps.readManifest(toml)
      const [first] = unknown
      if (first === undefined) return { toml, manifest, warnings }
      const { path, nearest } = first
      return { line: lineOfKey(toml, path), key: path, reason: `is unknown${suggest(nearest)}` }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return toProblem(error, toml)
    }
  }
}

/** File, line, key and reason in one line. */
export function describeProblem({ path, line, key, reason }: BadTemplate): string {
  const place = line === undefined ? path : `${path}:${line}`
  return [place, key, reason].filter((part) => part !== undefined).join(': ')
}

function problem(reason: string): Content {
  return { line: undefined, key: undefined, reason }
}

/** The line and key are in the details of what the reader of manifests throws. */
function toProblem({ message, details }: Refusal, toml: string): Content {
  const { line, reason, issues } = details as {
    readonly line?: number
    readonly reason?: string
    readonly issues?: readonly { readonly path: string; readonly message: string }[]
  }
  const [issue] = issues ?? []
  if (issue) return { line: lineOfKey(toml, issue.path), key: issue.path, reason: issue.message }
  return { line, key: undefined, reason: reason ?? message.replace(/^manifest_toml: /, '') }
}

const pathOf = (folder: string, name: string): string => join(folder, `${name}${ENDING}`)
/** Names of the templates in a folder; none when it does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const names = await readdir(folder)
    return names
      .filter((name) => name.endsWith(ENDING) && !name.startsWith('.'))
      .map((name) => name.slice(0, -ENDING.length))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
