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

/** Time for a program to clean up after its last event. */
const EXIT_GRACE_MS = 1000
/** How much of the end of its standard error is kept. */
const STDERR_CHARS = 4000

/** One run of a program in an empty folder of its own. The caller ends it with `close`. */
export class ProgramRun {
  readonly #name: string
  readonly #maxBytes: number
  #folder = ''
  #child: Child | undefined
  #pieces: Uint8Array[] = []
  #bytes = 0
  #stderr = ''
  #exit: Exit | undefined
  #resume: (() => void) | undefined

  constructor(name: string, maxBytes: number) {
    this.#name = name
    this.#maxBytes = maxBytes
  }

  /** The end of its standard error. */
  get stderr(): string {
    return this.#stderr
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
        // The operator chose it and signed in with it. An agent's text reaches it as a prompt, and its tools are off.
        trust: 'operator',
        args,
        env,
        cwd: this.#folder,
        input: 'open',
        background: true,
        timeoutMs: config.time_limit_secs * 1000,
        path: config.path,
        signal,
        outputBytes: STDERR_CHARS,
        ...(config.home !== undefined && { home: config.home }),
        onOutput: (bytes, from) => this.#onOutput(bytes, from),
      })
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof Refusal)) throw error
      const isBusy = error.code === 'rate_limit'
      throw new UpstreamFailure(this.#name, `${this.#name}: ${error.message}`, {
        reason: isBusy ? 'overloaded' : 'not_found',
        retry: isBusy ? 'later' : 'never',
        cause: error,
      })
    }
    const child = this.#child
    void child.ended.then((exit) => {
      this.#exit = exit
      this.#resume?.()
    })
    // A program that does not read its input, or has exited, explains itself in its output.
    child.write(promptOf(request, program.instructions !== undefined)).then(
      () => child.closeInput(),
      () => undefined,
    )
  }

  /** The next piece of its standard output, or how it ended when there are no more. */
  async next(): Promise<Uint8Array | Exit> {
    for (;;) {
      if (this.#bytes > this.#maxBytes)
        throw new UpstreamFailure(this.#name, `${this.#name} wrote more than ${this.#maxBytes} bytes`, {
          reason: 'malformed',
          retry: 'never',
        })
      const piece = this.#pieces.shift()
      if (piece) return piece
      if (this.#exit) return this.#exit
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    }
  }

  /** Ends the program and removes its folder. A program whose answer is complete may exit by itself. */
  async close(isComplete: boolean): Promise<void> {
    const { ended } = this.#child ?? {}
    const exited = new AbortController()
    if (isComplete && ended)
      await Promise.race([
        ended.then(() => exited.abort()),
        wait(EXIT_GRACE_MS, undefined, { signal: exited.signal }).catch(
          () => undefined /* aborted: the program has exited */,
        ),
      ])
    await this.#child?.kill()
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true })
  }

  #onOutput(bytes: Uint8Array, from: 'stdout' | 'stderr'): void {
    if (from === 'stderr') {
      this.#stderr = (this.#stderr + Buffer.from(bytes).toString()).slice(-STDERR_CHARS)
      return
    }
    this.#bytes += bytes.byteLength
    if (this.#bytes > this.#maxBytes) void this.#child?.kill()
    else this.#pieces.push(bytes)
    this.#resume?.()
  }

  async #prepare(
    { args, lastArgs = [], env = {}, instructions, settings }: ProgramRow,
    { system, model }: CompletionRequest,
  ): Promise<{ readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }> {
    if (model.startsWith('-'))
      throw new UpstreamFailure(this.#name, `${this.#name} has no model "${model}"`, {
        reason: 'not_found',
        retry: 'never',
      })
    const variables: Record<string, string> = { ...env }
    const allArgs = [...args, ...(model === 'default' ? [] : ['--model', model])]
    const writeTempFile = async (name: string, text: string): Promise<string> => {
      const path = join(this.#folder, name)
      await writeFile(path, text, { mode: 0o600 })
      return path
    }
    if (instructions && system !== '') {
      const path = await writeTempFile('instructions.md', system)
      if ('flag' in instructions) allArgs.push(instructions.flag, path)
      else variables[instructions.variable] = path
    }
    if (settings) variables[settings.variable] = await writeTempFile('settings.json', JSON.stringify(settings.content))
    return { args: [...allArgs, ...lastArgs], env: variables }
  }
}
