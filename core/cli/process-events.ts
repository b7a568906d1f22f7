import type { App } from '../app.ts'
import type { ConsolaInstance, Log } from '../log/log.ts'
import { exits } from './failure.ts'

/**
 * Forwards signals and failures of the process to the app that serves, and what packages print to the log. Dispose it to
 * remove the listeners.
 */
export interface ProcessEvents extends Disposable {
  /** From now on events go to this app. */
  serves(app: App): void
  ends(): void
  /** Whether something happened after which the process must not go on. */
  readonly failed: boolean
}

/** Errors of broken connections, emitted by sockets that no longer have a listener. */
const harmless = new Set(['EPIPE', 'ECONNRESET', 'ECONNABORTED'])

/** npm forwards the signal of Ctrl-C to the daemon, which has already received it from the terminal. */
const REPEATED_SIGNAL_MS = 1000

type StopKind = 'shutdown' | 'restart'

export function watchProcess(log: Log): ProcessEvents {
  return new ProcessListener(log)
}

class ProcessListener implements ProcessEvents {
  readonly #log: Log
  /** Closing a terminal ends what runs in it. Read at the start: afterwards a closed terminal is no terminal. */
  readonly #inTerminal: boolean
  readonly #removeListeners: () => void
  /** What packages print would miss the log, and may hold a secret. */
  readonly #printed: ConsolaInstance
  #app: App | undefined
  /** A request to stop from before there was an app. */
  #early: { readonly kind: StopKind; readonly reason: string } | undefined
  #stopping = false
  #stoppingSince = 0
  #failed = false

  constructor(log: Log) {
    this.#log = log
    const { isatty } = process.getBuiltinModule('node:tty')
    this.#inTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor))
    const onStop = (signal: NodeJS.Signals): void => this.#onStop(signal)
    this.#removeListeners = addListeners(
      {
        SIGINT: onStop,
        SIGTERM: onStop,
        SIGHUP: (signal) => this.#onHangup(signal),
        // By default Node opens its debugger on this signal, for everybody who can reach the port.
        SIGUSR1: (signal) => log.warn(`${signal} is ignored: the daemon is not opened to a debugger`),
      },
      (reason) => this.#report(reason, 'a promise was rejected and nothing handled it'),
      (error) => this.#onException(error),
    )
    this.#printed = log.withTag('console')
    this.#printed.wrapConsole()
  }

  get failed(): boolean {
    return this.#failed
  }
  serves(app: App): void {
    this.#app = app
    if (this.#early) this.#requestStop(this.#early.kind, this.#early.reason)
    this.#early = undefined
  }
  ends(): void {
    this.#app = undefined
  }
  [Symbol.dispose](): void {
    this.#removeListeners()
    this.#printed.restoreConsole()
  }

  #onStop(signal: NodeJS.Signals): void {
    if (this.#stopping) {
      if (performance.now() - this.#stoppingSince < REPEATED_SIGNAL_MS) return
      this.#log.warn(`${signal} again: exiting at once`)
      process.exit(this.#failed ? exits.failed : exits.interrupted)
    }
    this.#stopping = true
    this.#stoppingSince = performance.now()
    this.#log.info(`${signal}: stopping; send it again to exit at once`)
    this.#requestStop('shutdown', signal)
  }
  /** Without a terminal SIGHUP means "reload the configuration", by the convention for daemons. */
  #onHangup(signal: NodeJS.Signals): void {
    if (this.#inTerminal) this.#onStop(signal)
    else if (!this.#stopping) this.#requestStop('restart', signal)
  }
  #onException(error: Error): void {
    const what = 'an exception was not caught'
    if ('code' in error && harmless.has(String(error.code))) return this.#report(error, what)
    const plugin = this.#findOrigin(error)
    const where = plugin === undefined ? '' : ` in plugin "${plugin.name}"`
    this.#report(error, `${what}${where}; the daemon stops, because its state is unknown`)
    if (plugin) this.#app?.noteCrash(plugin.source, error)
    // The state it left behind is unknown: the supervisor of this process starts a new one.
    this.#failed = true
    if (this.#stopping) return
    this.#stopping = true
    if (!this.#app) process.exit(exits.failed)
    this.#requestStop('shutdown', what)
  }

  /** The plugin from outside whose code threw. */
  #findOrigin({ stack = '' }: Error): { readonly name: string; readonly source: string } | undefined {
    return this.#app?.daemon
      .plugins()
      .find(({ source }) => source !== 'built-in' && (stack.includes(`${source}/`) || stack.includes(`${source}:`)))
  }
  #requestStop(kind: StopKind, reason: string): void {
    if (this.#app) this.#app.daemon[kind](reason)
    else this.#early ??= { kind, reason }
  }
  #report(error: unknown, where: string): void {
    if (this.#app) this.#app.defect(error, where)
    else this.#log.error(where, error)
  }
}

/** Returns a function that removes the listeners. */
function addListeners(
  signals: Readonly<Partial<Record<NodeJS.Signals, (signal: NodeJS.Signals) => void>>>,
  onRejection: (reason: unknown) => void,
  onException: (error: Error) => void,
): () => void {
  const listeners = Object.entries(signals)
  for (const [signal, listener] of listeners) process.on(signal, listener)
  process.on('unhandledRejection', onRejection)
  process.on('uncaughtException', onException)
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
    process.off('unhandledRejection', onRejection)
    process.off('uncaughtException', onException)
  }
}
