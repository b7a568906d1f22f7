import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson } from '../schema/nesting.ts'
import { SerialQueue } from '../scope/queue.ts'
import { hasCode } from './confine.ts'
import { replaceConfined } from './late.ts'

type Entries<S extends v.GenericSchema> = readonly (readonly [string, v.InferOutput<S>])[]
type Keep<S extends v.GenericSchema> = (entries: Entries<S>) => Entries<S>

/**
 * What a home remembers by name, in a JSON file of its own: the last changes that it has made or adopted of what daemons
 * share. It tells what a restored database has forgotten, and what somebody has put back there.
 */
export class HomeRecord<S extends v.GenericSchema> {
  readonly #home: string
  readonly #file: string
  readonly #schema: S
  readonly #keep: Keep<S>
  readonly #writes = new SerialQueue()
  #entries: ReadonlyMap<string, v.InferOutput<S>> | undefined

  /** `keep`: the entries that are still of use, of all with the new ones, which are the last. */
  constructor(home: string, file: string, schema: S, keep: Keep<S> = (entries) => entries) {
    this.#keep = keep
    this.#home = home
    this.#file = file
    this.#schema = schema
  }

  /** Throws when the file is not what this class has written. */
  async all(): Promise<ReadonlyMap<string, v.InferOutput<S>>> {
    if (this.#entries) return this.#entries
    const text = await readFile(join(this.#home, this.#file), 'utf8').catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return '{}'
      throw error
    })
    return (this.#entries ??= new Map(Object.entries(v.parse(v.record(v.string(), this.#schema), readOwnJson(text)))))
  }
  async find(name: string): Promise<v.InferOutput<S> | undefined> {
    return (await this.all()).get(name)
  }
  /** Durable when it settles. */
  put(name: string, entry: v.InferOutput<S>): Promise<void> {
    return this.putAll([[name, entry]])
  }
  /** The same of several at once, in their order. */
  putAll(added: Entries<S>): Promise<void> {
    const names = new Set(added.map(([name]) => name))
    return this.#writes.run(async () => {
      const before = [...(await this.all())].filter(([known]) => !names.has(known))
      const entries = new Map(this.#keep([...before, ...added]))
      const text = JSON.stringify(Object.fromEntries(entries), null, 2)
      await replaceConfined(this.#home, this.#file, `${text}\n`)
      this.#entries = entries
    })
  }
}
