import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const MAX_LINES = 500
/** A longer line is not typed again. */
const MAX_CHARS = 2000

/** Lines that were typed at a prompt, in a file of this user that the next run reads. */
export class LineHistory {
  readonly #file: string
  /** The oldest first. */
  readonly lines: readonly string[]
  constructor(file: string) {
    this.#file = file
    const all = existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : []
    this.lines = all.slice(-MAX_LINES)
    if (all.length > MAX_LINES) this.#replace()
  }

  add(line: string): void {
    if (line !== '' && line.length <= MAX_CHARS && !line.includes('\n'))
      appendFileSync(this.#file, `${line}\n`, { mode: 0o600 })
  }

  #replace(): void {
    const draft = `${this.#file}.${process.pid}`
    writeFileSync(draft, `${this.lines.join('\n')}\n`, { mode: 0o600 })
    renameSync(draft, this.#file)
  }
}
