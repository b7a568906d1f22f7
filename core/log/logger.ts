/**
 * The log of a plugin. Its lines carry the plugin's name; secrets of the configuration and of the vault are masked. An
 * `Error` among the arguments is written with its stack.
 */
export interface Logger {
  /** Something failed that somebody has to look at. */
  error(message: unknown, ...details: readonly unknown[]): void
  /** Something is wrong, and work goes on. */
  warn(message: unknown, ...details: readonly unknown[]): void
  /** What an owner wants to know of, such as a connection that was made. */
  info(message: unknown, ...details: readonly unknown[]): void
  /** For whoever looks for a fault; not written by default (`log_level`). */
  debug(message: unknown, ...details: readonly unknown[]): void
}
