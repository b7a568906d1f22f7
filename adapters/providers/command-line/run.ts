import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Child, Exit, Spawn } from 'svc/sdk'
import type { CompletionRequest } from 'svc/providers'
import type { Config } from './driver.ts'
import type { ProgramRow } from './programs.ts'
import { promptOf } from './prompt.ts'

/** A program that has said its last word may tidy up for so long. */
const TIDY_MS = 1000
/** The end of what it complains of is enough. */
const COMPLAINT_CHARS = 4000

/** One run of a program in an empty folder of its own. Whoever starts it ends it with `close`. */
export class Run {
  readonly #name: string
  readonly #mostBytes: number
  #folder = ''
  #child: Child | undefined
  #pieces: Uint8Array[] = []
  #bytes = 0
  #complaint = ''
  #exit: Exit | undefined
  #wake: (() => void) | undefined

  constructor(name: string, mostBytes: number) {
    this.#name = name
    this.#mostBytes = mostBytes
  }

  /** What it wrote to its standard error, the end of it. */
  get complaint(): string {
    return this.#complaint
  }

  async start(
    program: ProgramRow,
    request: CompletionRequest,
    config: Config,
    spawn: Spawn,
    signal: AbortSignal,
  ): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'svc-model-'))
    const { args, env } = await this.#prepare(program, request)
    try {
      this.#child = await spawn.start({
        command: program.command,
        // The operator chose it and signed in with it; what an agent says reaches it as a prompt, and its tools are
        // off.
        trust: 'operator',
        args,
        env,
        cwd: this.#folder,
        input: 'open',
        background: true,
        timeoutMs: config.time_limit_secs * 1000,
        path: config.path,
        signal,
        outputBytes: COMPLAINT_CHARS,
        ...(config.home !== undefined && { home: config.home }),
        onOutput: (bytes, from) => this.#hear(bytes, from),
      })
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof Refusal)) throw error
      const busy = error.code === 'rate_limit'
      throw new UpstreamFailure(this.#name, `${this.#name}: ${error.message}`, {
        reason: busy ? 'overloaded' : 'not_found',
        retry: busy ? 'later' : 'never',
        cause: error,
      })
    }
    const child = this.#child
    void child.ended.then((exit) => {
      this.#exit = exit
      this.#wake?.()
    })
    // A program that reads nothing, or is gone, says why in its output.
    child.write(promptOf(request, program.instructions !== undefined)).then(
      () => child.closeInput(),
      () => undefined,
    )
  }

  /** The next piece of its output; how it ended when there are no more. */
  async next(): Promise<Uint8Array | Exit> {
    for (;;) {
      if (this.#bytes > this.#mostBytes)
        throw new UpstreamFailure(this.#name, `${this.#name} wrote more than ${this.#mostBytes} bytes`, {
          reason: 'malformed',
          retry: 'never',
        })
      const piece = this.#pieces.shift()
      if (piece) return piece
      if (this.#exit) return this.#exit
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Nothing of it is left afterwards. `whole`: it said all, and may end by itself. */
  async close(whole: boolean): Promise<void> {
    const { ended } = this.#child ?? {}
    const tidied = new AbortController()
    if (whole && ended)
      await Promise.race([
        ended.then(() => tidied.abort()),
        wait(TIDY_MS, undefined, { signal: tidied.signal }).catch(() => undefined /* it ended */),
      ])
    await this.#child?.kill()
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true })
  }

  #hear(bytes: Uint8Array, from: 'stdout' | 'stderr'): void {
    if (from === 'stderr') {
      this.#complaint = (this.#complaint + Buffer.from(bytes).toString()).slice(-COMPLAINT_CHARS)
      return
    }
    this.#bytes += bytes.byteLength
    if (this.#bytes > this.#mostBytes) void this.#child?.kill()
    else this.#pieces.push(bytes)
    this.#wake?.()
  }

  async #prepare(
    { args, last = [], env = {}, instructions, settings }: ProgramRow,
    { system, model }: CompletionRequest,
  ): Promise<{ readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }> {
    if (model.startsWith('-'))
      throw new UpstreamFailure(this.#name, `${this.#name} has no model "${model}"`, {
        reason: 'not_found',
        retry: 'never',
      })
    const variables: Record<string, string> = { ...env }
    const words = [...args, ...(model === 'default' ? [] : ['--model', model])]
    const file = async (name: string, text: string): Promise<string> => {
      const path = join(this.#folder, name)
      await writeFile(path, text, { mode: 0o600 })
      return path
    }
    if (instructions && system !== '') {
      const path = await file('instructions.md', system)
      if ('flag' in instructions) words.push(instructions.flag, path)
      else variables[instructions.variable] = path
    }
    if (settings) variables[settings.variable] = await file('settings.json', JSON.stringify(settings.content))
    return { args: [...words, ...last], env: variables }
  }
}
