import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { messageOf, processFile, programProxy, removeFolder } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import type { Child, Spawn } from 'svc/sdk'
import { admission } from './admission.ts'
import type { AdmissionDeps } from './admission.ts'
import { findChromium, findPlaywright, requireIsolation } from './chromium.ts'
import type { Settings } from './config.ts'
import { DriverAnswer } from './wire.ts'
import type { DriverArgs, DriverRequest, DriverStart, Op } from './wire.ts'

export interface SessionDeps extends AdmissionDeps {
  readonly spawn: Spawn
  readonly settings: Settings
  /** A folder of its own for each browser is made in it. */
  readonly folder: string
}
export type Reply = Exclude<DriverAnswer, { readonly ready: string }>
/** A connection that was refused, or failed. */
export interface Failure {
  readonly host: string
  readonly why: string
}

const MAX_LINE_BYTES = 16_777_216
const START_MS = 60_000
/** Beyond the time of a step: the process in the sandbox keeps to it unless a page hangs it. */
const GRACE_MS = 15_000
const MAX_FAILURES = 20
const ERROR_CHARS = 500

/** Chromium of one agent, in a sandbox with the process that drives it. Its steps run one after the other. */
export class Session {
  readonly agentId: string
  readonly startedAt = new Date().toISOString()
  /** Why it ended. */
  readonly ended: Promise<string>
  readonly #deps: SessionDeps
  readonly #folder: string
  readonly #waiting = new Map<number, PromiseWithResolvers<Reply>>()
  readonly #ready = Promise.withResolvers<void>()
  #child: Child | undefined
  #line: Buffer[] = []
  #lineBytes = 0
  #lastId = 0
  #reason: string | undefined
  #failures: Failure[] = []
  #errorText = ''

  /** Rejects with `service_unavailable` where there is no Chromium, or where it cannot be confined or started. */
  static async open(deps: SessionDeps, agentId: string, signal: AbortSignal): Promise<Session> {
    const session = new Session(deps, agentId)
    await session.#start(signal)
    return session
  }
  private constructor(deps: SessionDeps, agentId: string) {
    this.#deps = deps
    this.agentId = agentId
    this.#folder = join(deps.folder, randomUUID())
    const end = Promise.withResolvers<string>()
    this.ended = end.promise
    this.#onEnd = end.resolve
    this.#ready.promise.catch(() => undefined /* `#start` awaits it */)
  }
  readonly #onEnd: (reason: string) => void

  get isOver(): boolean {
    return this.#reason !== undefined
  }
  /** What was refused since the last call. */
  takeFailures(): readonly Failure[] {
    const failures = this.#failures
    this.#failures = []
    return failures
  }

  /** Rejects with `service_unavailable` when the browser ends meanwhile, or takes too long, which ends it. */
  async call(op: Op, args: DriverArgs, timeoutMs: number, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted()
    const id = ++this.#lastId
    const waiting = Promise.withResolvers<Reply>()
    this.#waiting.set(id, waiting)
    waiting.promise.catch(() => undefined /* awaited below, unless the browser ends before the request is written */)
    const timer = setTimeout(
      () => void this.end(`the step took longer than ${timeoutMs / 1000} s`),
      timeoutMs + this.#deps.settings.hang_timeout_secs * 1000 + GRACE_MS,
    )
    // A step cannot be taken back: whoever does not want its answer any more does not want this browser.
    const abort = (): void => void this.end('its step was stopped')
    signal.addEventListener('abort', abort, { once: true })
    try {
      const request: DriverRequest = { id, op, args, timeoutMs }
      if (this.#reason !== undefined || !this.#child) throw this.#gone()
      await this.#child.write(`${JSON.stringify(request)}\n`)
      const reply = await waiting.promise
      if (reply.fatal) {
        await this.end('a script of the page let nothing else run')
        throw this.#gone()
      }
      return reply
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      this.#waiting.delete(id)
    }
  }
  recheckNetwork(): Promise<void> {
    return this.#child?.recheckNetwork() ?? Promise.resolve()
  }
  /** Ends the browser with all of its processes. The first reason holds. */
  async end(reason: string): Promise<void> {
    this.#reason ??= reason
    await this.#child?.kill()
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { spawn, settings } = this.#deps
    await requireIsolation(spawn)
    const [chromium, playwright] = await Promise.all([findChromium(spawn, settings.chromium_path), findPlaywright()])
    const driver = processFile('browser', 'driver')
    const start: DriverStart = {
      module: playwright.module,
      executable: chromium.path,
      proxy: programProxy,
      width: settings.viewport_width,
      height: settings.viewport_height,
      downloadBytes: settings.max_download_bytes,
      hangMs: settings.hang_timeout_secs * 1000,
    }
    // Built code is one file.
    const parts = join(dirname(driver), '../driver')
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    try {
      this.#child = await spawn.start({
        command: 'env',
        args: [
          // In memory, private to the sandbox.
          'TMPDIR=/tmp',
          process.execPath,
          '--max-old-space-size=512',
          '--disable-warning=ExperimentalWarning',
          driver,
          JSON.stringify(start),
        ],
        cwd: this.#folder,
        input: 'open',
        background: true,
        timeoutMs: settings.max_life_secs * 1000,
        read: [process.execPath, driver, ...(existsSync(parts) ? [parts] : []), playwright.folder, ...chromium.read],
        confinesItself: true,
        network: admission(this.#deps, this.agentId),
        onConnectionFailure: (url, why) => this.#noteFailure({ host: url.host, why }),
        onOutput: (bytes, from) => (from === 'stdout' ? this.#read(bytes) : this.#keepError(bytes)),
        outputBytes: 1,
        signal,
      })
      void this.#child.ended.then(({ reason, code }) => this.#close(reason === 'timeout' ? 'its time was up' : code))
      await this.#awaitReady()
    } catch (error) {
      if (!this.#child) await removeFolder(this.#folder)
      throw error
    }
  }
  async #awaitReady(): Promise<void> {
    const timer = setTimeout(() => void this.end(`it did not start within ${START_MS / 1000} s`), START_MS)
    try {
      await this.#ready.promise
    } finally {
      clearTimeout(timer)
    }
  }

  #read(bytes: Uint8Array): void {
    let rest = Buffer.from(bytes)
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      const line = Buffer.concat([...this.#line, rest.subarray(0, at)])
      this.#line = []
      this.#lineBytes = 0
      rest = rest.subarray(at + 1)
      this.#take(line)
    }
    this.#line.push(rest)
    this.#lineBytes += rest.byteLength
    if (this.#lineBytes > MAX_LINE_BYTES) {
      this.#line = []
      this.#lineBytes = 0
      void this.end('its answer was too long')
    }
  }
  #take(line: Buffer): void {
    try {
      const answer = v.parse(DriverAnswer, readJson(line.toString('utf8')))
      if ('ready' in answer) this.#ready.resolve()
      else this.#waiting.get(answer.id)?.resolve(answer)
    } catch (error) {
      void this.end(`its answer cannot be read: ${messageOf(error).slice(0, 200)}`)
    }
  }
  #keepError(bytes: Uint8Array): void {
    this.#errorText = (this.#errorText + Buffer.from(bytes).toString('utf8')).slice(-ERROR_CHARS)
  }
  #noteFailure(failure: Failure): void {
    if (this.#failures.length < MAX_FAILURES) this.#failures.push(failure)
  }

  #close(how: string | number | null): void {
    const said = this.#errorText.trim()
    this.#reason ??= typeof how === 'string' ? how : `it ended by itself${said === '' ? '' : `: ${said}`}`
    const gone = this.#gone()
    this.#ready.reject(gone)
    for (const { reject } of this.#waiting.values()) reject(gone)
    const over = (): void => this.#onEnd(this.#reason ?? '')
    // What cannot be removed now goes before the first browser of the next start.
    removeFolder(this.#folder).then(over, over)
  }
  #gone(): Refusal {
    return new Refusal(
      'service_unavailable',
      `The browser was closed: ${this.#reason ?? 'it has ended'}. Open a page with browser_navigate to begin anew.`,
    )
  }
}
