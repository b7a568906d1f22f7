import { realpathSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { isAbsolute, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { installedFolders } from '../process/installation.ts'

/** The key of the query that tells generations of ES modules apart. */
const GENERATION = 'svc-generation'

/**
 * The modules of one plugin that Node itself loads, and so keeps: CommonJS, JSON and ES modules of JavaScript, in its
 * folder, in its own `node_modules`, and wherever links of these lead. Once one of them has changed, all of them are
 * loaded anew. Node never frees an ES module, so they are kept while nothing changed.
 */
export class NativeModules {
  readonly #folder: string
  readonly #cache: NodeJS.Dict<NodeModule>
  /** What each file was like when it was loaded. */
  readonly #files = new Map<string, string>()
  #generation = 0

  constructor(folder: string, cache: NodeJS.Dict<NodeModule>) {
    this.#folder = realFolder(folder)
    this.#cache = cache
    all.add(this)
    hook ??= registerHooks({ resolve: (specifier, context, next) => follow(next(specifier, context), context) })
  }

  get generation(): number {
    return this.#generation
  }

  /** Forgets the modules if one of them changed. Returns whether that was so. */
  refresh(): boolean {
    if ([...this.#files].every(([path, before]) => stampOf(path) === before)) return false
    for (const path of this.#files.keys()) delete this.#cache[path]
    this.#files.clear()
    this.#generation++
    return true
  }

  /** Notes a file that Node loads for the plugin. Those of the daemon are shared, and never forgotten. */
  add(path: string): void {
    if (!isAbsolute(path) || this.#files.has(path) || isOfDaemon(path)) return
    this.#files.set(path, stampOf(path))
  }

  /** The address that an ES module of the present generation has. */
  address(path: string, generation: number): string {
    this.add(path)
    const { href } = pathToFileURL(path)
    return isOfDaemon(path) ? href : `${href}?${GENERATION}=${generation}`
  }

  owns(path: string): boolean {
    return this.#files.has(path) || path.startsWith(this.#folder + sep)
  }
}

const all = new Set<NativeModules>()
let hook: ReturnType<typeof registerHooks> | undefined

interface Resolved {
  readonly url: string
}
/** A module of a plugin imports another one: that belongs to it as well, and is of the same generation. */
function follow<T extends Resolved>(found: T, { parentURL }: { readonly parentURL?: string | undefined }): T {
  if (parentURL === undefined || !parentURL.startsWith('file:') || !found.url.startsWith('file:')) return found
  const parent = fileURLToPath(parentURL)
  const owners = [...all].filter((one) => one.owns(parent))
  if (owners.length === 0) return found
  const path = fileURLToPath(found.url)
  for (const owner of owners) owner.add(path)
  const generation = new URL(parentURL).searchParams.get(GENERATION)
  if (generation === null || isOfDaemon(path) || new URL(found.url).searchParams.has(GENERATION)) return found
  const url = new URL(found.url)
  url.searchParams.set(GENERATION, generation)
  return { ...found, url: url.href }
}

let packages: readonly string[] | undefined
/** Packages of the installation, which the daemon uses itself. */
function isOfDaemon(path: string): boolean {
  packages ??= installedFolders()
    .filter(({ path: folder }) => folder.endsWith(`${sep}node_modules`))
    .map(({ path: folder }) => realFolder(folder) + sep)
  return packages.some((folder) => path.startsWith(folder))
}

function realFolder(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path /* gone, or not this layout */
  }
}

function stampOf(path: string): string {
  const facts = statSync(path, { throwIfNoEntry: false })
  return facts ? `${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}` : 'gone'
}
