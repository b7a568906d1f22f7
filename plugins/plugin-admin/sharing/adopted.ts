import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson, replaceConfined } from 'svc/internal'

const FILE = 'shared-plugins.json'
const AdoptedChange = v.object({
  /** Its id. */
  change: v.string(),
  /** ISO 8601 UTC: when it was made. One that is not later is not adopted any more. */
  changed_at: v.string(),
})
const Adopted = v.record(v.string(), AdoptedChange)

/**
 * The last change of each plugin that a home has made or adopted, in a file of the home: it tells what a restored
 * database has forgotten, and what somebody has put back there.
 */
export class AdoptedChanges {
  readonly #home: string
  #plugins: v.InferOutput<typeof Adopted> | undefined

  constructor(home: string) {
    this.#home = home
  }

  async find(plugin: string): Promise<v.InferOutput<typeof AdoptedChange> | undefined> {
    return (await this.#read())[plugin]
  }
  /** Milliseconds since 1970 of the last change; 0 when there was none. */
  async latest(): Promise<number> {
    return Math.max(0, ...Object.values(await this.#read()).map((one) => Date.parse(one.changed_at)))
  }
  /** Durable when it settles. */
  async put(plugin: string, change: string, changedAt: string): Promise<void> {
    const plugins = { ...(await this.#read()), [plugin]: { change, changed_at: changedAt } }
    await replaceConfined(this.#home, FILE, `${JSON.stringify(plugins, null, 2)}\n`)
    this.#plugins = plugins
  }

  async #read(): Promise<v.InferOutput<typeof Adopted>> {
    this.#plugins ??= v.parse(Adopted, readOwnJson(await readFile(join(this.#home, FILE), 'utf8').catch(orEmpty)))
    return this.#plugins
  }
}

function orEmpty(error: unknown): string {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '{}'
  throw error
}
