/** What the exit code of every command means; `svc help` prints this table. */
export const exits = {
  ok: 0,
  failed: 1,
  usage: 2,
  notRunning: 3,
  notFound: 4,
  refused: 5,
  config: 6,
  inUse: 7,
  interrupted: 130,
} as const
export const exitMeanings: readonly (readonly [code: number, meaning: string])[] = [
  [exits.ok, 'it worked'],
  [exits.failed, 'it failed; the message says why'],
  [exits.usage, 'unknown command or flag, or a value that cannot be used'],
  [exits.notRunning, 'the daemon is not running or cannot be reached'],
  [exits.notFound, 'what was named does not exist, such as a plugin, a key or a file'],
  [exits.refused, 'refused: the key is missing or wrong, or it is not allowed'],
  [exits.config, 'the configuration cannot be used'],
  [exits.inUse, 'another daemon uses this home, or the port is taken'],
  [exits.interrupted, 'interrupted with Ctrl-C'],
]

/** Ends a command: a message for people, what to do next, and the exit code. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exit: number
  readonly advice: string | undefined
  constructor(exit: number, message: string, advice?: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.exit = exit
    this.advice = advice
  }
}
