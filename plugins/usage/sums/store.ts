import type { PluginDatabase } from 'svc/sdk'

export interface Sums {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly requests: number
  readonly unpriced: number
}
export interface Totals extends Sums {
  readonly agents: number
  readonly estimated: number
}
export type Group<K extends string> = Sums & Readonly<Record<K, string>>

/** What records of one agent, model and UTC day come to. The cost is whole in billionths of a dollar. */
interface Part {
  readonly agent_id: string
  readonly provider: string
  readonly model: string
  readonly date: string
  readonly input_tokens: number
  readonly output_tokens: number
  readonly nano: number
  readonly requests: number
  readonly unpriced: number
  readonly estimated: number
}
/** Records that are summed at a time: some milliseconds, then others get their turn. */
const SLICE = 4_000
/** After every time, in every order that a database may sort texts in. */
const END = '9999-12-31T23:59:59.999Z'
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

/** Sums over records in the order of their time, a slice at a time however many there are. */
export class UsageSums {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async totals(since: string): Promise<Totals> {
    const agents = new Set<string>()
    const all = new Sum()
    let estimated = 0
    for await (const part of this.#parts(since)) {
      agents.add(part.agent_id)
      estimated += part.estimated
      all.add(part)
    }
    return { ...all.shown(), agents: agents.size, estimated }
  }

  /** One row for each value of the columns, the one with the most requests first, then by name. */
  async by<K extends 'agent_id' | 'provider' | 'model'>(columns: readonly K[], since = ''): Promise<Group<K>[]> {
    const rows = await this.#grouped(since, columns)
    return rows.toSorted(
      (a, b) =>
        b.requests - a.requests ||
        compare(
          columns.map((column) => a[column]),
          columns.map((column) => b[column]),
        ),
    )
  }
  /** One row for each UTC day on which something was used, oldest first. */
  async daily(since: string): Promise<Group<'date'>[]> {
    return (await this.#grouped(since, ['date'])).toSorted((a, b) => compare([a.date], [b.date]))
  }

  async #grouped<K extends 'agent_id' | 'provider' | 'model' | 'date'>(
    since: string,
    columns: readonly K[],
  ): Promise<Group<K>[]> {
    const groups = new Map<string, { readonly names: Readonly<Record<K, string>>; readonly sum: Sum }>()
    for await (const part of this.#parts(since)) {
      const names = Object.fromEntries(columns.map((column) => [column, part[column]])) as Record<K, string>
      const key = JSON.stringify(names)
      const found = groups.get(key) ?? { names, sum: new Sum() }
      groups.set(key, found)
      found.sum.add(part)
    }
    return [...groups.values()].map(({ names, sum }) => ({ ...sum.shown(), ...names }))
  }

  async *#parts(since: string): AsyncGenerator<Part> {
    for (let from: string | undefined = since; from !== undefined;) {
      const to = await this.#boundary(from)
      yield* await this.#db.all<Part>`SELECT agent_id, provider, model, substr(recorded_at, 1, 10) AS date,
          sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
          COALESCE(sum(CAST(round(cost_usd * 1000000000) AS BIGINT)), 0) AS nano, count(*) AS requests,
            count(*) - count(cost_usd) AS unpriced, sum(estimated) AS estimated
        FROM usage_record WHERE recorded_at >= ${from} AND recorded_at < ${to ?? END} GROUP BY agent_id, provider,
          model, substr(recorded_at, 1, 10)`
      from = to
      if (from !== undefined) await pause()
    }
  }
  /** The time a slice ends before; `undefined` for the last one. Records of the same moment are never parted. */
  async #boundary(from: string): Promise<string | undefined> {
    const row = await this.#db.one<{
      at: string
    }>`SELECT recorded_at AS at FROM usage_record WHERE recorded_at >= ${from} ORDER BY recorded_at
      LIMIT 1 OFFSET ${SLICE}`
    if (row === undefined || row.at > from) return row?.at
    return (
      await this.#db.one<{
        at: string
      }>`SELECT recorded_at AS at FROM usage_record WHERE recorded_at > ${from} ORDER BY recorded_at LIMIT 1`
    )?.at
  }
}

class Sum {
  #input = 0
  #output = 0
  #nano = 0
  #requests = 0
  #unpriced = 0
  add({ input_tokens: input, output_tokens: output, nano, requests, unpriced }: Part): void {
    this.#input += input
    this.#output += output
    this.#nano += nano
    this.#requests += requests
    this.#unpriced += unpriced
  }
  shown(): Sums {
    return {
      input_tokens: this.#input,
      output_tokens: this.#output,
      cost_usd: this.#nano / 1e9,
      requests: this.#requests,
      unpriced: this.#unpriced,
    }
  }
}

/** By code units, as a database sorts bytes of ASCII. */
function compare(a: readonly string[], b: readonly string[]): number {
  for (const [index, name] of a.entries()) {
    const other = b[index] ?? ''
    if (name !== other) return name < other ? -1 : 1
  }
  return 0
}
