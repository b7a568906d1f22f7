import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { commandLine } from '../process/command-name.ts'
import { readOwnJson } from '../schema/nesting.ts'

export interface CrashLimits {
  /** Crashes within the window after which the plugin is set aside; 0 for never. */
  readonly max: number
  readonly windowMs: number
}
const Entry = v.object({ times: v.array(v.number()), message: v.string() })
const Entries = v.record(v.string(), Entry)
type Entries = v.InferOutput<typeof Entries>

const FILE = 'plugin-crashes.json'
const MAX_MESSAGE = 300

/**
 * Which plugins from outside ended the daemon with an exception that nothing caught, kept in a file of the home: a
 * plugin that does so at every start is not loaded by the next one.
 */
export class CrashRecord {
  readonly #path: string
  readonly #limits: () => CrashLimits
  readonly #now: () => number
  constructor(home: string, limits: () => CrashLimits, now: () => number = Date.now) {
    this.#path = join(home, FILE)
    this.#limits = limits
    this.#now = now
  }

  /** Synchronous, because the process is about to end. */
  note(folder: string, error: Error): void {
    const { max, windowMs } = this.#limits()
    const entries = this.#read()
    const since = this.#now() - windowMs
    const times = [...(entries[folder]?.times ?? []).filter((time) => time > since), this.#now()].slice(
      -Math.max(1, max),
    )
    const message = error.message.replaceAll(/\s+/g, ' ').slice(0, MAX_MESSAGE)
    this.#write({ ...entries, [folder]: { times, message } })
  }

  /** Why the plugin in a folder is not loaded; `undefined` when it is. */
  reasonOf(folder: string): string | undefined {
    const { max, windowMs } = this.#limits()
    const entry = this.#read()[folder]
    if (max === 0 || !entry || entry.times.length < max) return undefined
    const [first = 0, last = 0] = [entry.times[0], entry.times.at(-1)]
    if (last - first > windowMs) return undefined
    return (
      `is set aside: it ended the daemon ${entry.times.length} times within ${Math.ceil((last - first) / 1000)} ` +
      `seconds, last with "${entry.message}"; correct it, then ${commandLine('plugin reload <plugin>')}`
    )
  }

  /** For a plugin that is loaded anew on request, or removed. */
  forget(folder: string): void {
    const { [folder]: found, ...others } = this.#read()
    if (found) this.#write(others)
  }

  #read(): Entries {
    try {
      return v.parse(Entries, readOwnJson(readFileSync(this.#path, 'utf8')))
    } catch {
      return {} /* no plugin ever crashed, or a crash cut the file: then nothing is set aside */
    }
  }
  #write(entries: Entries): void {
    writeFileSync(this.#path, `${JSON.stringify(entries, undefined, 2)}\n`, { mode: 0o600 })
  }
}
