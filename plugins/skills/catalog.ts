import { lstatSync, readdirSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { findNearest, messageOf, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { TEXT_FILE } from './manifest/front-matter.ts'
import { readSkill } from './manifest/read.ts'
import { SkillProblem } from './manifest/skill.ts'
import type { Origin, Skill } from './manifest/skill.ts'
import { MANIFEST_FILE } from './manifest/toml.ts'
import { FolderWatch } from './watch.ts'

/** Skills that are read until others have their turn: about a millisecond. */
const READ_AT_ONCE = 16

/** A folder that is no usable skill. */
export interface BadSkill {
  readonly folder: string
  readonly name: string
  readonly origin: Origin
  readonly problem: SkillProblem
}
export interface SkillRoots {
  /** Those that come with svc. They are read once: they change with the installation. */
  readonly bundled: string
  /** `<home>/skills`. */
  readonly local: string
}
export interface CatalogDeps {
  readonly roots: SkillRoots
  /** Names that are switched off. */
  readonly disabled: () => readonly string[]
  /** Called after a change of what there is or is switched off, with what was read anew. */
  readonly changed: (catalog: SkillCatalog, skills: readonly Skill[], bad: readonly BadSkill[]) => void
}
interface Entry {
  /** Changes with the files that say what the skill is. */
  readonly stamp: string
  readonly skill: Skill | undefined
  readonly bad: BadSkill | undefined
}

/** The skills there are: those of the home override those that come with svc. */
export class SkillCatalog implements Disposable {
  readonly #deps: CatalogDeps
  readonly #watch: FolderWatch
  /** Folders are watched from the first turn on. */
  #isWatching = false
  #entries: ReadonlyMap<string, Entry> = new Map()
  #skills: ReadonlyMap<string, Skill> = new Map()
  #bundled: readonly FoundFolder[] | undefined
  #reading: Promise<void> | undefined
  #revision = 0
  constructor(deps: CatalogDeps) {
    this.#deps = deps
    this.#watch = new FolderWatch(deps.roots.local)
  }
  /** Ends the watching of folders. */
  [Symbol.dispose](): void {
    this.#isWatching = false
    this.#watch[Symbol.dispose]()
  }

  /** Grows with every change of a skill. */
  get revision(): number {
    return this.#revision
  }
  /** By name, without those that are switched off. */
  get enabled(): readonly Skill[] {
    return [...this.#skills.values()].filter(({ name }) => this.isEnabled(name))
  }
  /** By name. */
  get all(): readonly Skill[] {
    return [...this.#skills.values()]
  }
  get bad(): readonly BadSkill[] {
    return [...this.#entries.values()].flatMap(({ bad }) => bad ?? [])
  }
  /** Names that are switched off, of which there is no skill. */
  get unknownDisabled(): readonly string[] {
    const names = [...this.#skills.keys(), ...this.bad.map(({ name }) => name)]
    return this.#deps
      .disabled()
      .filter((name) => !names.includes(name))
      .map((name) => `plugins.skills.disabled: there is no skill "${name}"${suggest(findNearest(name, names))}`)
  }
  isEnabled(name: string): boolean {
    return !this.#deps.disabled().includes(name)
  }
  find(name: string): Skill | undefined {
    return this.#skills.get(name)
  }
  /** Whether one of this name comes with svc, overridden or not. */
  isBundled(name: string): boolean {
    return this.#entries.get(join(this.#deps.roots.bundled, name))?.skill !== undefined
  }
  /** Throws `not_found`, with the nearest name. */
  require(name: string): Skill {
    const skill = this.#skills.get(name)
    if (skill) return skill
    const bad = this.bad.find((each) => each.name === name)
    if (bad) throw new Refusal('conflict', `The skill "${name}" cannot be used: ${bad.problem.message}`)
    const nearest = suggest(findNearest(name, this.#skills.keys()))
    throw new Refusal('not_found', `There is no skill "${name}"${nearest}`)
  }

  /** What is switched off has changed. */
  touch(): void {
    this.#revision++
    this.#deps.changed(this, [], [])
  }

  /**
   * Reads what was added or edited since, so that it holds from now on. Looks at the times of the files without
   * waiting: some microseconds for each skill of the home. `all`: reads those that come with svc again as well.
   * `isTurn`: does not look while the watched folders are quiet; for what a request from outside has led to.
   */
  async refresh({ all = false, isTurn = false } = {}): Promise<void> {
    while (this.#reading) await this.#reading
    if (isTurn && this.#watch.isQuiet()) return
    this.#isWatching ||= isTurn
    if (all) this.#bundled = undefined
    const found = this.#look()
    const changed = found.filter(({ folder, stamp }) => all || this.#entries.get(folder)?.stamp !== stamp)
    if (changed.length === 0 && found.length === this.#entries.size) return
    this.#reading = this.#read(found, changed).finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /** The text for the model; empty when there is none. */
  async text({ folder, text }: Skill): Promise<string> {
    if (text === undefined) return ''
    if ('inline' in text) return text.inline.trim()
    return (await readFile(join(folder, text.file), 'utf8')).slice(text.from).trim()
  }

  #look(): readonly FoundFolder[] {
    const { bundled, local } = this.#deps.roots
    // Every turn looks: the list of those that come with svc is kept.
    this.#bundled ??= foldersIn(bundled, 'bundled')
    const names = namesIn(local)
    if (this.#isWatching) this.#watch.follow(names)
    return [...this.#bundled, ...foldersIn(local, 'local', names)]
  }

  async #read(found: readonly FoundFolder[], changed: readonly FoundFolder[]): Promise<void> {
    const read = new Map<string, Entry>()
    for (const [at, each] of changed.entries()) {
      if (at % READ_AT_ONCE === READ_AT_ONCE - 1) await setImmediate()
      read.set(each.folder, await readEntry(each))
    }
    const entries = new Map<string, Entry>()
    for (const { folder } of found) {
      const entry = read.get(folder) ?? this.#entries.get(folder)
      if (entry) entries.set(folder, entry)
    }
    // Those of the home come last, and replace those that come with svc.
    const skills = new Map([...entries.values()].flatMap(({ skill }) => (skill ? [[skill.name, skill] as const] : [])))
    this.#entries = entries
    this.#skills = new Map([...skills].toSorted(([one], [other]) => (one < other ? -1 : 1)))
    this.#revision++
    this.#deps.changed(
      this,
      [...read.values()].flatMap(({ skill }) => skill ?? []),
      [...read.values()].flatMap(({ bad }) => bad ?? []),
    )
  }
}

interface FoundFolder {
  readonly folder: string
  readonly name: string
  readonly origin: Origin
  readonly stamp: string
}

async function readEntry({ folder, name, origin, stamp }: FoundFolder): Promise<Entry> {
  try {
    // It would be used wherever it leads, and change with what is there.
    if (lstatSync(folder).isSymbolicLink())
      throw new SkillProblem({ file: name }, 'is a link to a folder: copy the folder here, or install the skill')
    return { stamp, skill: { ...(await readSkill(folder, name)), origin, folder }, bad: undefined }
  } catch (error) {
    const problem = error instanceof SkillProblem ? error : new SkillProblem({ file: TEXT_FILE }, messageOf(error))
    return { stamp, skill: undefined, bad: { folder, name, origin, problem } }
  }
}

/** Names of the folders in a folder; none when it does not exist. */
function namesIn(folder: string): readonly string[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .toSorted()
}
/** Looked at before every turn: `join` would take a quarter of the time, and these names need none of it. */
const inside = (folder: string, name: string): string => folder + sep + name

function foldersIn(root: string, origin: Origin, names = namesIn(root)): readonly FoundFolder[] {
  return names.map((name) => {
    const folder = inside(root, name)
    return {
      folder,
      name,
      origin,
      stamp: `${stampOf(inside(folder, TEXT_FILE))},${stampOf(inside(folder, MANIFEST_FILE))}`,
    }
  })
}
/** Empty when there is no such file. */
function stampOf(file: string): string {
  const facts = statSync(file, { throwIfNoEntry: false })
  return facts ? `${facts.mtimeMs} ${facts.size} ${facts.ino}` : ''
}
