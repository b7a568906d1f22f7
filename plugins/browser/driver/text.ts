import { stripVTControlCharacters } from 'node:util'

export const NOTE_CHARS = 300

/** A page took longer than it may. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}
export const short = (text: string, length = NOTE_CHARS): string =>
  text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`
export const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

/** Rejects with `TooLong` when the work takes longer. */
export function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooLong(`it took longer than ${ms} ms`)), ms)
  })
  // Whoever lost the race has nobody left to tell.
  work.catch(() => undefined)
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** The first lines of an error of Playwright, without colours and the log of the call. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const plain = stripVTControlCharacters(text)
  return short(plain.split('\nCall log:')[0]?.trim() ?? '')
}
