import type { Daemon } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import { hash } from 'node:crypto'
import type { Member } from './contract.ts'
import type { MemberStore } from './store.ts'

export interface DifferencesDeps {
  readonly store: Pick<MemberStore, 'setDigests' | 'sections' | 'keys'>
  readonly self: string
  /** Of every key of the configuration, made with a secret that all daemons on the database have. */
  readonly configDigests: () => Promise<ReadonlyMap<string, string>>
  readonly plugins: () => ReturnType<Daemon['plugins']>
  /** For the batch of a change: the others hear of it. */
  readonly tellChange: () => readonly Statement[]
}

export interface Difference {
  readonly id: string
  readonly name: string
  /** Keys, and `plugin <name>`. */
  readonly keys: readonly string[]
}

type Digests = Readonly<Record<string, string>>

/**
 * What is not the same in the daemons on a database: keys of the configuration, and plugins.
 * Each writes digests of its own; a value is never compared but by its digest.
 */
export class Differences {
  readonly #deps: DifferencesDeps
  #written = ''

  constructor(deps: DifferencesDeps) {
    this.#deps = deps
  }

  /** Writes the digests of this daemon when they have changed. */
  async write(): Promise<void> {
    const { store, self, tellChange } = this.#deps
    const keys = await this.#own()
    const text = JSON.stringify(keys)
    if (text === this.#written) return
    await store.setDigests(self, sectionsOf(keys), keys, tellChange())
    this.#written = text
  }

  /** Of the others, those that differ from this one. */
  async find(members: readonly Member[]): Promise<readonly Difference[]> {
    const { store, self } = this.#deps
    const own = await this.#own()
    const [sections, version] = [sectionsOf(own), members.find(({ id }) => id === self)?.version]
    const found: Difference[] = []
    for (const row of await store.sections()) {
      const member = members.find(({ id }) => id === row.member)
      if (!member || row.member === self || same(row.sections, sections)) continue
      const theirs = await store.keys(row.member)
      if (!theirs) continue
      // Another version has other keys: what only one of them knows says nothing of the configuration.
      const keys = different(own, theirs).filter(
        (key) => member.version === version || (key in own && key in theirs) || key.startsWith(PLUGIN),
      )
      if (keys.length > 0) found.push({ id: member.id, name: member.name, keys })
    }
    return found
  }

  /**
   * Plugins of svc that failed here and are loaded in another daemon of the same version in which none fails that works
   * here. So of daemons in which something fails, one at least lacks nothing.
   */
  async lacking(members: readonly Member[]): Promise<readonly string[]> {
    const { store, self, plugins } = this.#deps
    const builtIn = plugins().filter(({ source }) => source === 'built-in')
    const failed = builtIn.filter(({ state }) => state === 'failed').map(({ name }) => name)
    if (failed.length === 0) return []
    const version = members.find(({ id }) => id === self)?.version
    for (const other of members) {
      const serves = other.state === 'active' || other.state === 'impaired'
      if (other.id === self || other.version !== version || !serves) continue
      const keys = await store.keys(other.id)
      // It has not said yet what it has.
      if (!keys || Object.keys(keys).length === 0) continue
      const stateThere = (name: string): string => keys[`${PLUGIN}${name}`]?.split(' ').at(-1) ?? 'loaded'
      const lacks = failed.filter((name) => stateThere(name) === 'loaded')
      const fails = builtIn.filter(({ name }) => stateThere(name) === 'failed')
      if (lacks.length > 0 && fails.every(({ name }) => failed.includes(name))) return lacks
    }
    return []
  }

  async #own(): Promise<Digests> {
    const { configDigests, plugins } = this.#deps
    // Those of svc are everywhere: only one that is not loaded tells something.
    const told = plugins().filter(({ source, state }) => source !== 'built-in' || settled(state) !== 'loaded')
    return {
      ...Object.fromEntries(await configDigests()),
      ...Object.fromEntries(
        told.map(({ name, version, state }) => [`${PLUGIN}${name}`, `${version} ${settled(state)}`]),
      ),
    }
  }
}

const PLUGIN = 'plugin '

/** A plugin that is being replaced is not another one: it is told when that has failed. */
function settled(state: ReturnType<Daemon['plugins']>[number]['state']): string {
  return state === 'loading' || state === 'unloading' ? 'loaded' : state
}

function different(one: Digests, other: Digests): readonly string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((key) => one[key] !== other[key]).toSorted()
}
const same = (one: Digests, other: Digests): boolean => different(one, other).length === 0

/** One digest for each `[section]` and each `[plugins.name]`: the keys are read only where these differ. */
function sectionsOf(keys: Digests): Digests {
  const sections = new Map<string, string[]>()
  for (const [key, digest] of Object.entries(keys).toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const parts = key.split('.')
    const name = parts.slice(0, parts[0] === 'plugins' ? 2 : 1).join('.')
    sections.set(name, [...(sections.get(name) ?? []), `${key} ${digest}`])
  }
  return Object.fromEntries(
    [...sections].map(([name, lines]) => [name, hash('sha256', lines.join('\n'), 'base64url').slice(0, 16)]),
  )
}

/** The same for daemons of another build, which this one does not know enough of. */
export function describeUnknown(members: readonly Member[]): readonly string[] {
  return members
    .filter(({ state }) => state === 'unknown')
    .map(
      ({ id, name, version }) =>
        `daemon "${name}" (${id}, svc ${version}) is in a state that this version of svc does not know: it is given ` +
        'no work, and is declared dead as any other',
    )
}

/** Others that are called as this daemon: nobody can tell them apart in lists and warnings. */
export function describeNamesakes(self: Member, members: readonly Member[]): readonly string[] {
  return members
    .filter(({ id, name }) => id !== self.id && name === self.name)
    .map(
      ({ id, address }) =>
        `another daemon on the database is called "${self.name}" too (${id}, ${address ?? 'address unknown'}): ` +
        'set plugins.cluster.name',
    )
}

/** A notice that ends before its time. */
export function describeNotice(noticeSecs: number, drainMs: number): readonly string[] {
  return noticeSecs * 1000 <= drainMs
    ? []
    : [
        `plugins.cluster.notice_secs (${noticeSecs}) counts within plugins.drain_ms (${drainMs}), which is shorter: the ` +
          'daemon stops then; raise plugins.drain_ms',
      ]
}

/** A line for each, for the warnings of the daemon. */
export function describeDifferences(differences: readonly Difference[]): readonly string[] {
  return differences.map(({ name, keys }) => {
    const more = keys.length > MAX_NAMED ? ` and ${keys.length - MAX_NAMED} more` : ''
    return `daemon "${name}" differs from this one in ${keys.slice(0, MAX_NAMED).join(', ')}${more}`
  })
}
const MAX_NAMED = 10
