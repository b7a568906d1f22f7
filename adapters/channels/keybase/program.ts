import type * as v from 'valibot'
import * as valibot from 'valibot'
import { readJson } from 'svc/sdk'
import type { Link } from './config.ts'
import { failureOf, keybaseFailure } from './errors.ts'
import { ApiFailure, apiAnswer } from './wire.ts'

const CALL_MS = 60_000
const MAX_ANSWER = 8_388_608
const MAX_WORDS = 4096

export interface ProgramResult {
  readonly isSuccess: boolean
  readonly stdout: string
  readonly stderr: string
}
export interface ProgramHandlers {
  stdout?(bytes: Uint8Array): void
  stderr?(text: string): void
}

/** The program of Keybase. */
export class Keybase {
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
  }

  /** Starts what runs for as long as the connection does. */
  async start(args: readonly string[], { stdout, stderr }: ProgramHandlers) {
    const { program, folder } = this.#link.config
    return await this.#link.startProgram({
      program,
      folder,
      args: ['--home', folder, ...args],
      onOutput: (bytes, from) => (from === 'stdout' ? stdout?.(bytes) : stderr?.(Buffer.from(bytes).toString())),
    })
  }

  /** Runs a command to its end. It never starts a service of its own. */
  async run(args: readonly string[], input?: string): Promise<ProgramResult> {
    const { program, folder } = this.#link.config
    const answer: Uint8Array[] = []
    let size = 0
    let stderr = ''
    const child = await this.#link.startProgram({
      program,
      folder,
      args: ['--home', folder, '--no-auto-fork', ...args],
      timeoutMs: CALL_MS,
      ...(input !== undefined && { input }),
      onOutput(bytes, from) {
        if (from === 'stderr') stderr = (stderr + Buffer.from(bytes).toString()).slice(-MAX_WORDS)
        else if ((size += bytes.length) <= MAX_ANSWER) answer.push(Uint8Array.from(bytes))
      },
    })
    const { code, reason } = await child.ended
    this.#link.signal.throwIfAborted()
    if (reason !== 'exit') throw keybaseFailure('keybase did not answer in time', 'timeout', 'later')
    return { isSuccess: code === 0, stdout: Buffer.concat(answer).toString(), stderr }
  }

  /** One call of `keybase chat api`. */
  async call<S extends v.GenericSchema>(method: string, options: object, result: S): Promise<v.InferOutput<S>> {
    const request = JSON.stringify({ method, params: { version: 1, options } })
    const { stdout, stderr } = await this.run(['chat', 'api'], request)
    const json = parse(stdout)
    const failure = valibot.safeParse(ApiFailure, json)
    if (failure.success) throw failureOf(failure.output.error.message, `keybase refused ${method}`)
    const answer = valibot.safeParse(apiAnswer(result), json)
    if (answer.success) return answer.output.result as v.InferOutput<S>
    // A program that was killed, and one that lost its service, say nothing of the message.
    throw keybaseFailure(`keybase did not answer ${method}: ${stderr.trim().slice(0, 200)}`, 'cut', 'later')
  }
}

function parse(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined /* told by the caller */
  }
}
