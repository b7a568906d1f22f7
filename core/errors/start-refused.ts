/** Thrown by the setup of a plugin: with this, the daemon does not start. On a reload the old code goes on. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
  /** What to do. */
  readonly advice: string
  constructor(message: string, advice: string, options: ErrorOptions = {}) {
    super(message, options)
    this.advice = advice
  }
}
