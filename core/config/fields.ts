import * as v from 'valibot'
import { secret } from '../schema/secret.ts'

/** What a key needs beside a value. The marks stand in the JSON Schema. */
export interface Marks {
  /** A new value holds after a restart; without the mark it holds after a reload. */
  readonly restart?: true
  /** The owner reads it through `Configuration` each time it needs it, so a new value reloads nothing. */
  readonly live?: true
  /** Folders that are opened to programs: nothing of the daemon is loaded from them. */
  readonly opens_folders?: true
  /** Its name sounds like a secret, and its value is none. */
  readonly secret?: false
  /** Whether only the file sets it (`file-only.ts`); without the mark the section around it decides. */
  readonly file_only?: boolean
  /** What an attacker could win by setting it, or why nobody wins anything. */
  readonly reason?: string
}
/** Marks of a key that only the file sets. */
export const inFile = (reason: string): Marks => ({ file_only: true, reason })
/** Marks of a key that the API sets as well. */
export const overApi = (reason: string): Marks => ({ file_only: false, reason })

/** A whole number in a range, with its default and one sentence about it. */
export function integer(description: string, fallback: number, min: number, max: number, marks: Marks = {}) {
  return v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(min),
      v.maxValue(max),
      v.description(description),
      v.metadata({ ...marks }),
    ),
    fallback,
  )
}

/** A switch, off by default. */
export function flag(description: string, marks: Marks = {}, fallback = false) {
  return v.optional(v.pipe(v.boolean(), v.description(description), v.metadata({ ...marks })), fallback)
}

/** One line of text: a name, a file. */
export function text(description: string, marks: Marks = {}) {
  return v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(4096),
      v.regex(/^\P{Cc}+$/u, 'a text that is not empty, of one line and at most 4096 characters'),
      v.description(description),
      v.metadata({ ...marks }),
    ),
  )
}

/** A list of texts, empty by default. */
export function texts(description: string, marks: Marks = {}) {
  return v.optional(
    v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.description(description), v.metadata({ ...marks })),
    [],
  )
}

/** A list of texts that each pass `accepts`; `expected` describes such a list. */
export function textsThat(
  description: string,
  accepts: (item: string) => boolean,
  expected: string,
  marks: Marks = {},
) {
  return v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1))),
      v.check((list) => list.every(accepts), expected),
      v.description(description),
      v.metadata({ ...marks }),
    ),
    [],
  )
}

/** A text that is never shown. */
export function secretText(description: string) {
  return v.optional(secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description))))
}

/** An http or https address. */
export function webAddress(description: string) {
  return v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
  )
}

/** The name of an environment variable. */
export function variable(description: string) {
  return v.optional(
    v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of a variable'), v.description(description)),
  )
}

/** A table whose marks hold for every key of it that has none of its own. */
export function table<E extends v.ObjectEntries>(description: string, marks: Marks, entries: E) {
  return v.pipe(v.object(entries), v.description(description), v.metadata({ ...marks }))
}
