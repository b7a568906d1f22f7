import { readJson, UpstreamFailure } from 'svc/sdk'
import type { Exit } from 'svc/sdk'
import { estimateUsage, isPlausible } from 'svc/providers'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'
import { createClaudeReader } from './claude-lines.ts'
import { createCodexReader } from './codex-lines.ts'
import type { Config } from './driver.ts'
import { failureOf } from './errors.ts'
import { readGeminiLine } from './gemini-lines.ts'
import { LineSplitter } from './lines.ts'
import type { LineReader, ProgramEvent } from './lines.ts'
import type { ProgramRow } from './programs.ts'

/** A line that grows beyond this is a fault of the program. In characters. */
const MAX_LINE = 8_388_608
/** So many malformed lines make the answer malformed; a single one is skipped. */
const MAX_MALFORMED = 3

const readers: Readonly<Record<ProgramRow['lines'], (program: ProgramRow) => LineReader>> = {
  claude: ({ cacheBesideInput }) => createClaudeReader(cacheBesideInput === true),
  codex: createCodexReader,
  gemini: () => readGeminiLine,
}

/** Turns the output of one run of a program into events. */
export class Answer {
  readonly #name: string
  readonly #program: ProgramRow
  readonly #config: Config
  readonly #request: CompletionRequest
  readonly #readLine: LineReader
  readonly #lines = new LineSplitter(MAX_LINE)
  #chars = 0
  #jsonLines = 0
  #malformed = 0
  #warning: Extract<ProgramEvent, { type: 'failed' | 'warning' }> | undefined
  #isComplete = false

  constructor(name: string, program: ProgramRow, config: Config, request: CompletionRequest) {
    this.#name = name
    this.#program = program
    this.#config = config
    this.#request = request
    this.#readLine = readers[program.lines](program)
  }

  /** Whether the program has sent its last event. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  *read(bytes: Uint8Array): Generator<CompletionEvent> {
    for (const line of this.#lines.feed(bytes)) {
      if (this.#isComplete) return
      yield* this.#eventsOf(line)
    }
  }
  /** Reads a last line without a line break. */
  *finish(): Generator<CompletionEvent> {
    yield* this.#eventsOf(this.#lines.finish())
  }

  /** Why a program ended before its last event. */
  exitFailure({ reason, code }: Exit, stderr: string): UpstreamFailure {
    if (reason === 'timeout')
      return this.#failure(`took longer than ${this.#config.time_limit_secs} s`, { reason: 'timeout', retry: 'later' })
    if (this.#warning) return failureOf(this.#name, this.#program, this.#warning.message, this.#warning.status)
    if (this.#jsonLines > 0)
      return this.#failure('stopped in the middle of its answer', { reason: 'cut', retry: 'later' })
    if (code === 0) return this.#malformedFailure('ended without an answer in JSON')
    return failureOf(this.#name, this.#program, stderr || `it ended with code ${code ?? 'none'}`, undefined)
  }

  *#eventsOf(line: string | undefined): Generator<CompletionEvent> {
    for (const event of this.#parse(line)) {
      switch (event.type) {
        case 'text':
        case 'thinking':
          this.#chars += event.delta.length
          yield { type: event.type, delta: event.delta }
          break
        case 'done': {
          this.#isComplete = true
          const isCounted = event.usage !== undefined && isPlausible(event.usage)
          const usage = isCounted ? event.usage : estimateUsage(this.#request, this.#chars)
          yield { type: 'end', stop: event.stop, usage }
          break
        }
        case 'failed':
          throw failureOf(this.#name, this.#program, event.message, event.status)
        case 'warning':
          this.#warning = event
      }
    }
  }

  #parse(line: string | undefined): readonly ProgramEvent[] {
    if (line === undefined) throw this.#malformedFailure(`wrote a line of more than ${MAX_LINE} characters`)
    // Programs print greetings and warnings between the lines of JSON.
    if (!line.startsWith('{')) return []
    let json: unknown
    try {
      json = readJson(line)
    } catch {
      if (++this.#malformed >= MAX_MALFORMED) throw this.#malformedFailure('wrote an answer that cannot be read')
      return []
    }
    this.#jsonLines++
    return this.#readLine(json)
  }

  #malformedFailure(what: string): UpstreamFailure {
    return this.#failure(what, { reason: 'malformed', retry: 'later' })
  }
  #failure(what: string, options: ConstructorParameters<typeof UpstreamFailure>[2]): UpstreamFailure {
    return new UpstreamFailure(this.#name, `${this.#name}: ${this.#program.command} ${what}`, options)
  }
}
