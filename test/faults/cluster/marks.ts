import { existsSync, readFileSync } from 'node:fs'

/** What the tool `mark` of every daemon wrote: a line each time it really ran. */
export class Marks {
  readonly file: string
  constructor(file: string) {
    this.file = file
  }
  /** How often it ran for a label. */
  of(label: string): number {
    return this.#lines.filter((line) => line === label).length
  }
  /** Labels for which it ran more than once. */
  get repeated(): readonly string[] {
    const lines = this.#lines
    return [...new Set(lines.filter((line, index) => lines.indexOf(line) !== index))]
  }
  get #lines(): readonly string[] {
    return existsSync(this.file) ? readFileSync(this.file, 'utf8').trim().split('\n') : []
  }
}
