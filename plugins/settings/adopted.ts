import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson, replaceConfined } from 'svc/internal'

const FILE = 'shared-settings.json'
const Adopted = v.record(v.string(), v.object({ change: v.string(), digest: v.string() }))

/**
 * What a home has adopted of the settings that daemons share, in a file of the home: it goes where `config.toml` goes.
 * By key the id of the change, and a digest of the value the key had then.
 */
export class AdoptedSettings {
  readonly #home: string
  #keys: v.InferOutput<typeof Adopted> | undefined

  constructor(home: string) {
    this.#home = home
  }

  async find(key: string): Promise<{ readonly change: string; readonly digest: string } | undefined> {
    return (await this.#read())[key]
  }
  /** Durable when it settles. */
  async put(key: string, change: string, digest: string): Promise<void> {
    const keys = { ...(await this.#read()), [key]: { change, digest } }
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
