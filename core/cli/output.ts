import { escapeControls } from '../log/text.ts'

/** Standard output is for answers, standard error for everything else. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** A time of the API, such as `2026-03-01 09:30 UTC`, to the minute or the second; nothing for `null`. */
export const renderTime = (iso: string | null, to: 'minute' | 'second' = 'minute'): string =>
  iso === null ? '' : `${iso.slice(0, to === 'minute' ? 16 : 19).replace('T', ' ')} UTC`

/** Names and values below each other. */
export function renderFacts(facts: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${escapeControls(value)}`.trimEnd()).join('\n')
}
export function renderDuration(secs: number): string {
  const parts = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ] as const
  let left = Math.floor(secs)
  const words: string[] = []
  for (const [size, unit] of parts) {
    if (left >= size) words.push(`${Math.floor(left / size)} ${unit}`)
    left %= size
  }
  if (words.length === 0 || (words.length === 1 && left > 0)) words.push(`${left} s`)
  return words.slice(0, 2).join(' ')
}
