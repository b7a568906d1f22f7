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
  all(rows: readonly unknown[]): readonly v.InferOutput<S>[] {
    return rows.flatMap((row) => {
      const read = this.one(row)
      return read === undefined ? [] : [read]
    })
  }
  /** `undefined` for a row that cannot be read. */
  one(row: unknown): v.InferOutput<S> | undefined {
    try {
      const read = v.safeParse(this.#deps.schema, row)
      if (read.success) return read.output
      this.#name(row, v.getDotPath(read.issues[0]) ?? undefined)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.#name(row, undefined)
    }
    return undefined
  }

  /** Says nothing of the values: they may be secret. */
  #name(row: unknown, column: string | undefined): void {
    const { table, key, log, effect = 'is left out' } = this.#deps
    const values = new Map(Object.entries(row ?? {}))
    const name = key.map((part) => `${part} ${JSON.stringify(values.get(part))}`.slice(0, MAX_KEY_CHARS)).join(', ')
    if (this.#named.has(name) || this.#named.size >= MAX_NAMED_ROWS) return
    this.#named.add(name)
    const what = column === undefined ? 'its JSON cannot be parsed' : `"${column}" is not as expected`
    log.error(`the row of ${table} with ${name} ${effect}: ${what}; the other rows are used, and it stays there`)
  }
}
