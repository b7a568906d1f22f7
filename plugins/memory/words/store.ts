import * as v from 'valibot'
import { jsonColumn, nullableColumn, numberColumn, RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Changes, Logger, PluginDatabase, SqlPart, Statement } from 'svc/sdk'
import { idSet, isKept, matching } from '../store.ts'
import type { Narrowing } from './scopes.ts'

/** Of the newest memories with a word, how many are looked at where a time has to fit, which no mark says. */
const MAX_TIMED = 2_000
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
  /** So many have them that the newest are met soon. */
  readonly isCommon: boolean
}
export interface Times {
  readonly since?: string | undefined
  readonly until?: string | undefined
}

const HitsRow = v.object({ expression: v.string(), ids: nullableColumn(v.string()) })
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

  /** For each the newest memories that have all of its words, the newest first. */
  async hits(
    sought: readonly Sought[],
    narrowing: Narrowing,
    times: Times,
    limit: number,
  ): Promise<readonly (readonly number[])[]> {
    const expressions = sought.map(({ words }) => this.#expression(words, narrowing))
    const isTimed = times.since !== undefined || times.until !== undefined
    const [few, many] = [new Set<string>(), new Set<string>()]
    for (const [at, { isCommon }] of sought.entries()) (isCommon ? many : few).add(expressions[at] ?? '')
    const found = new Map<string, string | undefined>()
    for (const [set, isCommon] of [[few, false] as const, [many, true] as const]) {
      if (set.size === 0) continue
      const newest = this.#newest(isCommon, isTimed ? MAX_TIMED : limit)
      const rows = await this.#db.all`SELECT key AS expression, (SELECT ${this.#joined()} FROM
          (${isTimed ? this.#timed(newest, times, limit) : newest}) AS hit) AS ids
        FROM json_each(${idSet(set)}) AS question`
      for (const { expression, ids } of v.parse(v.array(HitsRow), rows)) found.set(expression, ids)
    }
    return expressions.map((expression) => toNumbers(found.get(expression)))
  }
  /** The newest memories with what `question.key` says. */
  #newest(isCommon: boolean, limit: number): SqlPart {
    if (this.#db.dialect === 'sqlite')
      return sqlPart`SELECT rowid AS id FROM memory_words WHERE memory_words MATCH question.key
        ORDER BY rowid DESC LIMIT ${limit}`
    // PostgreSQL does not know how many there are, and takes the wrong way without OFFSET 0: of what few have, all are
    // fetched and ordered; of what many have, enough are met soon from the newest memory on.
    return isCommon
      ? sqlPart`SELECT id FROM (SELECT id, lexemes FROM memory_text ORDER BY id DESC OFFSET 0) AS newest
          WHERE lexemes @@ CAST(question.key AS TSQUERY) LIMIT ${limit}`
      : sqlPart`SELECT id FROM (SELECT id FROM memory_text WHERE lexemes @@ CAST(question.key AS TSQUERY) OFFSET 0) AS own
          ORDER BY id DESC LIMIT ${limit}`
  }
  #timed(newest: SqlPart, { since, until }: Times, limit: number): SqlPart {
    return sqlPart`SELECT found.id FROM (${newest}) AS found JOIN memory_text ON memory_text.id = found.id
      JOIN memory_entry ON memory_entry.id = memory_text.memory_id
      WHERE ${matching({ since, until }, this.#db.dialect)} ORDER BY found.id DESC LIMIT ${limit}`
  }
  #joined(): SqlPart {
    return this.#db.dialect === 'sqlite' ? sqlPart`group_concat(id)` : sqlPart`string_agg(CAST(id AS TEXT), ',')`
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
const toNumbers = (ids: string | undefined): readonly number[] => (ids === undefined ? [] : ids.split(',').map(Number))
