import type { Statement, Value } from './database.ts'
import { mapCode } from './dialect.ts'

/** A template's text, joined once. The key is the template itself: the same place in the code is the same object. */
const texts = new WeakMap<TemplateStringsArray, string>()

export function toStatement(template: TemplateStringsArray, values: readonly (Value | SqlPart)[]): Statement {
  for (const value of values) if (value instanceof SqlPart) return compose(template, values)
  let sql = texts.get(template)
  if (sql === undefined) texts.set(template, (sql = template.join('?')))
  return { sql, values: values as readonly Value[] }
}
function compose([first = '', ...rest]: TemplateStringsArray, values: readonly (Value | SqlPart)[]): Statement {
  let sql = first
  const bound: Value[] = []
  for (const [place, text] of rest.entries()) {
    const value = values[place] ?? null
    if (value instanceof SqlPart) bound.push(...value.values)
    else bound.push(value)
    sql += (value instanceof SqlPart ? value.sql : '?') + text
  }
  return { sql, values: bound }
}

/**
 * A part of a statement, with its values. `sqlPart` alone makes one: an object that came as JSON is never taken for SQL.
 */
export class SqlPart {
  readonly #statement: Statement
  constructor({ sql, values }: Statement) {
    this.#statement = { sql, values: Object.freeze([...values]) }
  }
  /** The text, with `?` for each value. */
  get sql(): string {
    return this.#statement.sql
  }
  /** The values, in the order of the question marks. */
  get values(): readonly Value[] {
    return this.#statement.values
  }
}
/**
 * A condition, or another part of SQL, that several statements share: ``db.all`SELECT id FROM t WHERE ${part}` `` has its
 * text and binds its values. Parts may have parts.
 */
export function sqlPart(template: TemplateStringsArray, ...values: (Value | SqlPart)[]): SqlPart {
  return new SqlPart(toStatement(template, values))
}

/**
 * A text as both databases store it: PostgreSQL refuses the character zero, which anybody can put into a message, and
 * what is on SQLite is to be copied there some day.
 */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)

/** A map that forgets what was not used for longest, so that texts built at run time cannot fill the memory. */
export class Recent<V> {
  readonly #entries = new Map<string, V>()
  readonly #limit: number
  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string, make: (key: string) => V): V {
    let value = this.#entries.get(key)
    if (value !== undefined) {
      // Only a map that is nearly full needs its order kept: re-inserting costs more than the look-up.
      if (this.#entries.size > this.#limit / 2) {
        this.#entries.delete(key)
        this.#entries.set(key, value)
      }
      return value
    }
    value = make(key)
    if (this.#entries.size >= this.#limit)
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest)
        break
      }
    this.#entries.set(key, value)
    return value
  }
  clear(): void {
    this.#entries.clear()
  }
}

const CONTROL =
  /^[\s;]*(begin|commit|end|rollback|savepoint|release|start\s+transaction|attach|detach|pragma|vacuum)\b/i
/** Throws for text that would end or leave the transaction it shares with others. */
export function refuseControl(sql: string): void {
  const word = CONTROL.exec(sql)?.[1]
  if (word) throw new Error(`"${word}" is not for plugins: batch() is the only transaction`)
}

const LIMITS = /\b(limit|offset)\s+\?(?!\s*[-+*/|&<>=])/gi
/**
 * The same statement, planned once. For a bare `LIMIT ?` SQLite looks at the number while it plans, and so plans
 * anew at every run,
 * which costs ten times the run itself; behind an expression it does not look.
 */
export function steady(sql: string): string {
  return sql.search(LIMITS) >= 0 ? mapCode(sql, (code) => code.replace(LIMITS, '$1 (? + 0)')) : sql
}
