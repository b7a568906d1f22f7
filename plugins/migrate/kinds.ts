export const SOURCE_TYPES = ['openclaw', 'openfang', 'librefang'] as const
export type SourceType = (typeof SOURCE_TYPES)[number]

/** What comes over, in the order in which it is made: a schedule needs its agent. */
export const KINDS = [
  'agent',
  'skill',
  'workspace',
  'value',
  'memory',
  'session',
  'channel',
  'workflow',
  'cron',
  'trigger',
  'key',
  'config',
] as const
export type Kind = (typeof KINDS)[number]
