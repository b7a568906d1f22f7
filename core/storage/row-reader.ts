import * as v from 'valibot'
import type { Logger } from '../log/logger.ts'

export interface RowReaderDeps<S extends v.GenericSchema> {
  readonly table: string
  /** Columns that name a row in the log. */
  readonly key: readonly string[]
  /** What a row must be. It may throw, as JSON that cannot be parsed does. */
  readonly schema: S
  readonly log: Pick<Logger, 'error'>
  /** What becomes of a row that cannot be read, for the log. */
  readonly effect?: string
}

/** Beyond it, further rows are left out without a line in the log. */
export const MAX_NAMED_ROWS = 1_000
const MAX_KEY_CHARS = 200
/** Rows that cannot be read before the first that can. */
const MAX_SKIPPED = 100

interface Unreadable {
  /** By the columns of its key. */
  readonly name: string
  readonly why: string
}

/** Of this process since the daemon started, by table. A row that was repaired counts until the next start. */
const unreadable = new Map<string, Set<string>>()
export function forgetUnreadable(): void {
  unreadable.clear()
}
/** A line for each table with rows that could not be read. */
export function describeUnreadable(): readonly string[] {
  return [...unreadable].map(
    ([table, { size }]) =>
      `${UNREADABLE}${table}: ${size}${size >= MAX_NAMED_ROWS ? ' or more' : ''} since the start, left out; the log names each`,
  )
}
/** How such a line begins. */
export const UNREADABLE = 'rows that cannot be read in '

/**
 * Reads rows that another build or a person may have written: one that cannot be read is left out and named in the log,
 * once, so that it does not stop what works on the others. It stays in its table.
 */
export class RowReader<S extends v.GenericSchema> {
  readonly #deps: RowReaderDeps<S>
  readonly #named = new Set<string>()
  constructor(deps: RowReaderDeps<S>) {
    this.#deps = deps
  }

  /** Those that can be read, in their order. */
  all(rows: readonly unknown[]): v.InferOutput<S>[] {
    return rows.flatMap((row) => {
      const read = this.one(row)
      return read === undefined ? [] : [read]
    })
  }
  /** `undefined` where there is no row, and for one that cannot be read. */
  one(row: unknown): v.InferOutput<S> | undefined {
    const read = row === undefined ? undefined : this.#read(row)
    if (read === undefined || 'value' in read) return read?.value
    this.#name(read)
    return undefined
  }
  /** The first that can be read, for who works rows off in their order: those before it stay where they are. */
  async first(read: (limit: number) => Promise<readonly unknown[]>): Promise<v.InferOutput<S> | undefined> {
    const [row] = await read(1)
    return row === undefined ? undefined : (this.one(row) ?? this.all(await read(MAX_SKIPPED))[0])
  }
  /** For rows that mean nothing without each other: throws when one cannot be read. */
  allOrThrow(rows: readonly unknown[]): readonly v.InferOutput<S>[] {
    return rows.map((row) => this.#require(row))
  }
  /** For who would write what the row has already: throws when it cannot be read. `undefined` where there is none. */
  oneOrThrow(row: unknown): v.InferOutput<S> | undefined {
    return row === undefined ? undefined : this.#require(row)
  }

  #require(row: unknown): v.InferOutput<S> {
    const read = this.#read(row)
    if ('value' in read) return read.value
    this.#count(read)
    throw new Error(`the row of ${this.#deps.table} with ${read.name} cannot be read: ${read.why}`)
  }
  /** Says nothing of the values of a row that cannot be read: they may be secret. */
  #read(row: unknown): { readonly value: v.InferOutput<S> } | Unreadable {
    try {
      const read = v.safeParse(this.#deps.schema, row)
      if (read.success) return { value: read.output }
      return { name: this.#nameOf(row), why: `"${v.getDotPath(read.issues[0]) ?? 'it'}" is not as expected` }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return { name: this.#nameOf(row), why: 'its JSON cannot be parsed' }
    }
  }
  #nameOf(row: unknown): string {
    const values = new Map(Object.entries(row ?? {}))
    return this.#deps.key
      .map((part) => `${part} ${JSON.stringify(values.get(part))}`.slice(0, MAX_KEY_CHARS))
      .join(', ')
  }
  #count({ name }: Unreadable): void {
    const { table } = this.#deps
    const names = unreadable.get(table) ?? new Set()
    unreadable.set(table, names)
    if (names.size < MAX_NAMED_ROWS) names.add(name)
  }
  #name({ name, why }: Unreadable): void {
    const { table, log, effect = 'is left out' } = this.#deps
    this.#count({ name, why })
    if (this.#named.has(name) || this.#named.size >= MAX_NAMED_ROWS) return
    this.#named.add(name)
    log.error(`the row of ${table} with ${name} ${effect}: ${why}; the other rows are used, and it stays there`)
  }
}
