import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson, replaceConfined } from 'svc/internal'

const FILE = 'shared-settings.json'
const AdoptedSetting = v.object({
  /** The id of the change. */
  change: v.string(),
  /** Of the value the key had then. */
  digest: v.string(),
  /** Of the change: one that is not above it is not adopted any more. The version before did not keep it. */
  number: v.optional(v.number()),
})
export type AdoptedSetting = v.InferOutput<typeof AdoptedSetting>
const Adopted = v.record(v.string(), AdoptedSetting)

/**
 * What a home has adopted of the settings that daemons share, in a file of the home: it goes where `config.toml` goes.
 * It also tells what a restored database has forgotten.
 */
export class AdoptedSettings {
  readonly #home: string
  #keys: v.InferOutput<typeof Adopted> | undefined

  constructor(home: string) {
    this.#home = home
  }

  async find(key: string): Promise<AdoptedSetting | undefined> {
    return (await this.#read())[key]
  }
  /** The highest number of a change. */
  async highest(): Promise<number> {
    return Math.max(0, ...Object.values(await this.#read()).map(({ number = 0 }) => number))
  }
  /** Durable when it settles. */
  async put(key: string, adopted: AdoptedSetting): Promise<void> {
    const keys = { ...(await this.#read()), [key]: adopted }
    await replaceConfined(this.#home, FILE, `${JSON.stringify(keys, null, 2)}\n`)
    this.#keys = keys
  }

  async #read(): Promise<v.InferOutput<typeof Adopted>> {
    this.#keys ??= v.parse(Adopted, readOwnJson(await readFile(join(this.#home, FILE), 'utf8').catch(orEmpty)))
    return this.#keys
  }
}

function orEmpty(error: unknown): string {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '{}'
  throw error
}
