import type { App } from '../app.ts'
import type { Log } from '../log/log.ts'
import { exits } from './failure.ts'

/** Signals and failures of the process, led to the app that serves. Dispose to take the listeners back. */
export interface ProcessEvents extends Disposable {
  /** From now on they go to this app. */
  serves(app: App): void
  ends(): void
  /** Whether something happened after which the process must not go on. */
  readonly failed: boolean
}

/** Broken connections that surface as events of a socket nobody listens to any more. */
const harmless = new Set(['EPIPE', 'ECONNRESET', 'ECONNABORTED'])

/** npm sends the signal of Ctrl-C on to the daemon, which the terminal has already sent it. */
const REPEATED_SIGNAL_MS = 1000

export function watchProcess(log: Log): ProcessEvents {
  let app: App | undefined
  /** What was asked for before there was an app to ask. */
  let early: { readonly kind: 'shutdown' | 'restart'; readonly reason: string } | undefined
  let stopping = false
  let stoppingSince = 0
  let failed = false

  const onStop = (signal: NodeJS.Signals): void => {
    if (stopping) {
      if (performance.now() - stoppingSince < REPEATED_SIGNAL_MS) return
      log.warn(`${signal} again: leaving at once`)
      process.exit(failed ? exits.failed : exits.interrupted)
    }
    stopping = true
    stoppingSince = performance.now()
    log.info(`${signal}: stopping; once more to leave at once`)
    ask('shutdown', signal)
  }
  const ask = (kind: 'shutdown' | 'restart', reason: string): void => {
    if (app) app.daemon[kind](reason)
    else early ??= { kind, reason }
  }
  /**
   * A terminal that closes ends what was started in it; for a daemon without one it means "read your configuration
   * again".
   */
  // Asked now: what is gone when the signal comes is no terminal any more.
  const { isatty } = process.getBuiltinModule('node:tty')
  const inTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor))
  const onHangup = (signal: NodeJS.Signals): void => {
    if (inTerminal) onStop(signal)
    else if (!stopping) ask('restart', signal)
  }
  const report = (error: unknown, where: string): void => {
    if (app) app.defect(error, where)
    else log.error(where, error)
  }
  const onRejection = (reason: unknown): void => report(reason, 'a promise failed and nobody was watching')
  const onException = (error: Error): void => {
    report(error, 'an exception was not caught')
    if ('code' in error && harmless.has(String(error.code))) return
    // What it interrupted is unknown: whoever supervises this process starts a sound one.
    failed = true
    if (stopping) return
    stopping = true
    if (!app) process.exit(exits.failed)
    ask('shutdown', 'an exception was not caught')
  }
  // Left to itself Node opens its debugger on this signal, to whoever may send it or reach the port.
  const onDebug = (signal: NodeJS.Signals): void =>
    log.warn(`${signal} is ignored: the daemon is not opened to a debugger`)
  const detach = attach(
    { SIGINT: onStop, SIGTERM: onStop, SIGHUP: onHangup, SIGUSR1: onDebug },
    onRejection,
    onException,
  )

  return {
    get failed() {
      return failed
    },
    serves(next) {
      app = next
      if (early) ask(early.kind, early.reason)
      early = undefined
    },
    ends() {
      app = undefined
    },
    [Symbol.dispose]: detach,
  }
}

/** Listens to the process; the function that is returned takes the listeners back. */
function attach(
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
