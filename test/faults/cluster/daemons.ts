import { once } from 'node:events'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startDaemon } from '../../support/daemon.ts'
import type { DaemonProcess } from '../../support/daemon.ts'
import type { DatabaseLink } from './database-link.ts'

const PORT = 4545
/** Between two starts, and how long it is tried. */
const RESTART_MS = 500
const STARTS_MS = 30_000
const shiftedDate = fileURLToPath(new URL('../shifted-date.cjs', import.meta.url))
const marker = fileURLToPath(new URL('../../fixtures/plugins/marker', import.meta.url))

/** Loopback addresses of this run: at these no port is taken by another program, and a daemon keeps its own. */
export function loopbackAddresses(): (last: number) => string {
  const byte = (): number => 1 + Math.floor(Math.random() * 254)
  const network = `127.${byte()}.${byte()}`
  return (last) => `${network}.${last}:${PORT}`
}

export interface ClusterDaemonOptions {
  readonly name: string
  readonly home: string
  /** `host:port`, the same after each start. */
  readonly address: string
  readonly link: DatabaseLink
  readonly database: { readonly name: string }
  /** `config.toml`, alike in all daemons. */
  readonly config: string
  readonly built: boolean
}

/** One daemon of the cluster: a process on a home of its own, started again and again. */
export class ClusterDaemon implements AsyncDisposable {
  readonly name: string
  readonly url: string
  readonly link: DatabaseLink
  readonly #options: ClusterDaemonOptions
  #process: DaemonProcess | undefined
  #starting: Promise<void> | undefined
  #printed = ''

  private constructor(options: ClusterDaemonOptions) {
    this.#options = options
    this.name = options.name
    this.link = options.link
    this.url = `http://${options.address}`
  }
  static async prepare(options: ClusterDaemonOptions): Promise<ClusterDaemon> {
    const { home, config } = options
    await mkdir(home, { mode: 0o700, recursive: true })
    await writeFile(join(home, 'vault.key'), 'ab'.repeat(32), { mode: 0o600 })
    await writeFile(join(home, 'config.toml'), config, { mode: 0o600 })
    await cp(marker, join(home, 'plugins', 'marker'), { recursive: true })
    return new ClusterDaemon(options)
  }

  /** As a service manager does: it is started again while it ends before it listens, such as without a database. */
  start(): Promise<void> {
    // Two incidents may have killed it.
    this.#starting ??= this.#startAgain().finally(() => (this.#starting = undefined))
    return this.#starting
  }
  async #startAgain(): Promise<void> {
    if (this.#process) return
    for (const began = performance.now(); ; await delay(RESTART_MS)) {
      try {
        return await this.#startOnce()
      } catch (error) {
        if (performance.now() - began > STARTS_MS) throw error
      }
    }
  }
  async #startOnce(signal?: AbortSignal): Promise<void> {
    const { home, address, link, database, built, name } = this.#options
    this.#process = await startDaemon({
      home,
      built,
      args: ['--host', address.split(':')[0] ?? '', '--port', String(PORT)],
      env: {
        SVC_DATABASE_URL: `${link.urlOf(database)}&application_name=${name}`,
        SVC_PLUGINS__CLUSTER__NAME: name,
        SHIFT_FILE: this.#shiftFile,
        NODE_OPTIONS: `--require=${shiftedDate}`,
      },
      ...(signal && { signal }),
    })
  }
  /** Kills it so long after its start, whether or not it listens by then. */
  async startAndKill(afterMs: number): Promise<void> {
    const signal = AbortSignal.timeout(Math.round(afterMs))
    // It ends before it listens.
    await this.#startOnce(signal).catch(() => undefined)
    if (!signal.aborted) await once(signal, 'abort')
    await this.kill()
  }
  /** Its wall clock is ahead of that of this machine. */
  async shiftClock(ms: number): Promise<void> {
    await writeFile(this.#shiftFile, String(Math.round(ms)))
  }
  async kill(): Promise<void> {
    await this.#process?.kill()
    this.#forget()
  }
  /** SIGTERM; the exit code. */
  async stop(): Promise<number | null | undefined> {
    const code = await this.#process?.stop()
    this.#forget()
    return code
  }
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.#process) process.kill(this.#process.pid, signal)
  }
  /** Everything that all its runs printed. */
  get output(): string {
    return this.#printed + (this.#process?.output() ?? '')
  }
  get #shiftFile(): string {
    return join(this.#options.home, 'shift')
  }
  #forget(): void {
    this.#printed = this.output
    this.#process = undefined
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
