/** MCP `LoggingLevel`, from the one that tells most. */
const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

/** The level of these that tells most. */
export function mostVerbose(levels: Iterable<string>): string | undefined {
  const wanted = new Set(levels)
  return LOG_LEVELS.find((level) => wanted.has(level))
}
/** Whether a client that wants messages from `least` on wants one of this level; one that has said nothing wants all. */
export function isLogged(level: unknown, least: string | undefined): boolean {
  const rank = (of: unknown): number => LOG_LEVELS.indexOf(of as (typeof LOG_LEVELS)[number])
  return least === undefined || rank(level) >= rank(least)
}
