import * as v from 'valibot'
import { jsonColumn, nullableColumn, numberColumn, RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Changes, Logger, PluginDatabase, SqlPart, Statement } from 'svc/sdk'
import { idSet, isKept, joined, matching, numbersOf } from '../store.ts'
import type { Members } from './members.ts'
import type { Narrowing } from './scopes.ts'

/** Of the newest memories with a word, how many are looked at where a time has to fit, which no mark says. */
const MAX_TIMED = 2_000
/** Where more than so many times the limit have a word, the newest part of the index is less work than all of it. */
const MIN_RECENT = 3
/** How much larger that part is than it were if they lay evenly in the index. */
const RECENT_SPARE = 1.3
const NOTHING: Narrowing = { anyOf: [], allOf: [] }
/** A text of a `tsvector` has at most a megabyte. */
const MAX_CHARS = 200_000

/** A memory as the index has it. */
export interface IndexedText {
  readonly memoryId: string
  readonly content: string
  readonly words: readonly string[]
  readonly marks: readonly string[]
}
/** One of these words. */
export type Alternatives = readonly string[]
/** What a memory is to have together. */
export interface Sought {
  readonly words: readonly Alternatives[]
  /** How many memories may have it; 0 where nothing is known. */
  readonly expected: number
}
/** Among what is looked for, and how many of each are enough. */
export interface Range {
  readonly narrowing: Narrowing
  readonly times: Times
  readonly limit: number
  /** The largest number of the index. */
  readonly newest: number
  /** How many have the marks. */
  readonly total: number
  /** Those that have the marks, where they are known. */
  readonly members: Members | undefined
}
/** How the newest memories with words are looked for: what is least work depends on how many have them. */
type Way =
  /** Without marks, of which the members are taken. */
  | 'members'
  /** From the newest on until there are enough. */
  | 'newest'
  /** All that have them, of which the newest are taken. */
  | 'all'
  /** The same of the newest part of the index, in which there may be enough. */
  | 'recent'
export interface Times {
  readonly since?: string | undefined
  readonly until?: string | undefined
}

const IdsRow = v.object({ ids: nullableColumn(v.string()) })
const HitsRow = v.object({ expression: v.string(), ...IdsRow.entries })
const CountRow = v.object({ count: numberColumn })
const TextRow = v.object({ id: numberColumn, memory_id: v.string(), words: v.string() })
export type TextRow = v.InferOutput<typeof TextRow>
const UnindexedRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  user_id: v.string(),
  session_id: v.string(),
  level: v.string(),
  category: nullableColumn(v.string()),
  tags: jsonColumn(v.array(v.string())),
  key: nullableColumn(v.string()),
  content: v.string(),
})
export type UnindexedRow = v.InferOutput<typeof UnindexedRow>

/** The statements on the index of words. Numbers are those of `memory_text`: the larger, the newer. */
export class WordStore {
  readonly #db: PluginDatabase
  readonly #unindexed: RowReader<typeof UnindexedRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#unindexed = new RowReader({ table: 'memory_entry', key: ['id'], schema: UnindexedRow, log })
  }

  /** Whether the index has memories in the order in which they were written, and shows none before an earlier one. */
  get isInOrder(): boolean {
    return this.#db.dialect === 'sqlite'
  }

  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }

  /** Goes after what wrote the memory. Does nothing where it is another text, or there already. */
  add({ memoryId, content, words, marks }: IndexedText): Statement {
    return this.#db.sql`INSERT INTO memory_text (memory_id, words, scopes)
      SELECT id, CAST(${cut(words.join(' '))} AS TEXT), CAST(${marks.join(' ')} AS TEXT) FROM memory_entry
      WHERE id = ${memoryId} AND content = ${content} AND superseded_by = ''
      ON CONFLICT (memory_id) DO NOTHING`
  }
  /** The same for one that has changed. */
  replace(text: IndexedText): readonly Statement[] {
    return [this.#db.sql`DELETE FROM memory_text WHERE memory_id = ${text.memoryId}`, this.add(text)]
  }

  /** Memories that an older version wrote. */
  async unindexed(limit: number): Promise<readonly UnindexedRow[]> {
    return this.#unindexed.all(
      await this.#db.all`SELECT id, agent_id, user_id, session_id, level, category, tags, key, content FROM memory_entry
        WHERE has_words = 0 AND superseded_by = '' AND ${isKept} ORDER BY id LIMIT ${limit}`,
    )
  }
  /** Of the text as it was read. */
  indexed(memoryId: string, content: string): Statement {
    return this.#db.sql`UPDATE memory_entry SET has_words = 1 WHERE id = ${memoryId} AND content = ${content}`
  }

  /** For each the newest memories that have all of its words. */
  async hits(sought: readonly Sought[], range: Range): Promise<readonly (readonly number[])[]> {
    const found = new Map<Sought, readonly number[]>()
    const again: Sought[] = []
    for (const [way, some] of Map.groupBy(sought, ({ expected }) => this.#way(expected, range)))
      for (const [one, { ids, isWhole }] of await this.#find(way, some, range))
        if (isWhole) found.set(one, ids)
        else again.push(one)
    if (again.length > 0)
      for (const [one, { ids }] of await this.#find(this.isInOrder ? 'newest' : 'all', again, range))
        found.set(one, ids)
    return sought.map((one) => found.get(one) ?? [])
  }
  #way(expected: number, { limit, newest, members }: Range): Way {
    if (this.isInOrder) return members ? 'members' : 'newest'
    // PostgreSQL does not know how many there are.
    if (expected * expected > 2 * limit * newest) return 'newest'
    return expected > MIN_RECENT * limit ? 'recent' : 'all'
  }
  /** `isWhole`: none is missing, nor is a newer one. */
  async #find(
    way: Way,
    sought: readonly Sought[],
    { narrowing, times, limit, newest, total, members }: Range,
  ): Promise<ReadonlyMap<Sought, { readonly ids: readonly number[]; readonly isWhole: boolean }>> {
    const isTimed = times.since !== undefined || times.until !== undefined
    const marks = way === 'members' ? NOTHING : narrowing
    const enough = way === 'members' ? Math.ceil((limit * newest) / total) : limit
    const expressions = new Map(sought.map((one) => [one, this.#expression(one.words, marks)]))
    // The number from which on there may be enough.
    const from = (expected: number): number =>
      Math.max(0, Math.floor(newest * (1 - (RECENT_SPARE * limit) / Math.max(1, expected))))
    const froms = Object.fromEntries([...expressions].map(([{ expected }, expression]) => [expression, from(expected)]))
    const those = this.#newest(way, isTimed ? MAX_TIMED : enough)
    const rows = await this.#db.all`SELECT key AS expression, (SELECT ${joined(sqlPart`id`, this.#db.dialect)} FROM
        (${isTimed ? this.#timed(those, times, limit) : those}) AS hit) AS ids
      FROM json_each(${JSON.stringify(froms)}) AS question`
    const found = new Map(v.parse(v.array(HitsRow), rows).map(({ expression, ids }) => [expression, numbersOf(ids)]))
    return new Map(
      [...expressions].map(([one, expression]) => {
        const all = found.get(expression) ?? []
        const ids = (way === 'members' && members ? all.filter((id) => members.has(id)) : all).slice(0, limit)
        const isCut = way === 'recent' || (way === 'members' && all.length >= enough)
        return [one, { ids, isWhole: ids.length >= limit || !isCut }]
      }),
    )
  }
  /** The newest memories with what `question.key` says. */
  #newest(way: Way, limit: number): SqlPart {
    if (this.isInOrder)
      return sqlPart`SELECT rowid AS id FROM memory_words WHERE memory_words MATCH question.key
        ORDER BY rowid DESC LIMIT ${limit}`
    // PostgreSQL takes the wrong way without OFFSET 0.
    if (way === 'newest')
      return sqlPart`SELECT id FROM (SELECT id, lexemes FROM memory_text ORDER BY id DESC OFFSET 0) AS newest
        WHERE lexemes @@ CAST(question.key AS TSQUERY) LIMIT ${limit}`
    const part = way === 'recent' ? sqlPart`id >= CAST(CAST(question.value AS TEXT) AS BIGINT)` : sqlPart`1 = 1`
    return sqlPart`SELECT id FROM
      (SELECT id FROM memory_text WHERE lexemes @@ CAST(question.key AS TSQUERY) AND ${part} OFFSET 0) AS own
      ORDER BY id DESC LIMIT ${limit}`
  }
  #timed(newest: SqlPart, { since, until }: Times, limit: number): SqlPart {
    return sqlPart`SELECT found.id FROM (${newest}) AS found JOIN memory_text ON memory_text.id = found.id
      JOIN memory_entry ON memory_entry.id = memory_text.memory_id
      WHERE ${matching({ since, until }, this.#db.dialect)} ORDER BY found.id DESC LIMIT ${limit}`
  }
  /** How many have all of these words, or are there at all for none; no more than `limit`. */
  async count(words: readonly Alternatives[], narrowing: Narrowing, limit: number): Promise<number> {
    const expression = this.#expression(words, narrowing)
    const row =
      expression === ''
        ? await this.#db.one`SELECT COUNT(*) AS count FROM (SELECT id FROM memory_text LIMIT ${limit}) AS hit`
        : this.#db.dialect === 'sqlite'
          ? await this.#db.one`SELECT COUNT(*) AS count FROM
              (SELECT rowid FROM memory_words WHERE memory_words MATCH ${expression} LIMIT ${limit})`
          : await this.#db.one`SELECT COUNT(*) AS count FROM
              (SELECT id FROM memory_text WHERE lexemes @@ CAST(${expression} AS TSQUERY) LIMIT ${limit}) AS hit`
    return v.parse(CountRow, row).count
  }
  /** The next numbers behind `after` that have the marks, on SQLite. */
  async numbers(narrowing: Narrowing, after: number, limit: number): Promise<readonly number[]> {
    const row = await this.#db
      .one`SELECT ${joined(sqlPart`id`, 'sqlite')} AS ids FROM (SELECT rowid AS id FROM memory_words
      WHERE memory_words MATCH ${this.#expression([], narrowing)} AND rowid > ${after} ORDER BY rowid LIMIT ${limit})`
    return numbersOf(v.parse(IdsRow, row).ids)
  }
  /** The largest number; 0 where there is none. */
  async newest(): Promise<number> {
    return v.parse(CountRow, await this.#db.one`SELECT COALESCE(MAX(id), 0) AS count FROM memory_text`).count
  }

  async texts(ids: readonly number[]): Promise<readonly TextRow[]> {
    if (ids.length === 0) return []
    const rows = await this.#db.all`SELECT id, memory_id, words FROM memory_text
      WHERE id IN (SELECT CAST(key AS BIGINT) FROM json_each(${idSet(ids.map(String))}))`
    return v.parse(v.array(TextRow), rows)
  }
  async textsOf(memoryIds: readonly string[]): Promise<readonly TextRow[]> {
    if (memoryIds.length === 0) return []
    const rows = await this.#db.all`SELECT id, memory_id, words FROM memory_text
      WHERE memory_id IN (SELECT key FROM json_each(${idSet(memoryIds)}))`
    return v.parse(v.array(TextRow), rows)
  }

  /** All of `words`, narrowed. Words and marks have letters, digits and `_` only; the quotes make them no operators. */
  #expression(words: readonly Alternatives[], { anyOf, allOf }: Narrowing): string {
    const [quote, and, or] = this.#db.dialect === 'sqlite' ? ['"', ' AND ', ' OR '] : ["'", ' & ', ' | ']
    const quoted = (word: string): string => `${quote}${word}${quote}`
    const oneOf = (some: Alternatives): string =>
      some.length === 1 ? some.map(quoted).join('') : `(${some.map(quoted).join(or)})`
    return [...words, ...(anyOf.length === 0 ? [] : [anyOf]), ...allOf.map((mark) => [mark])].map(oneOf).join(and)
  }
}

/** No word of it is cut. */
const cut = (text: string): string =>
  text.length <= MAX_CHARS ? text : text.slice(0, text.lastIndexOf(' ', MAX_CHARS))
