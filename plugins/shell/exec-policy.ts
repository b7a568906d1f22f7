import * as v from 'valibot'

const seconds = v.pipe(v.number(), v.minValue(1), v.maxValue(120))
const ExecPolicy = v.object({
  mode: v.optional(v.picklist(['deny', 'allowlist', 'full']), 'full'),
  safe_bins: v.optional(v.array(v.string()), [
    'sleep',
    'true',
    'false',
    'cat',
    'sort',
    'uniq',
    'cut',
    'tr',
    'head',
    'tail',
    'wc',
    'date',
    'echo',
    'printf',
    'basename',
    'dirname',
    'pwd',
    'env',
  ]),
  allowed_commands: v.optional(v.array(v.string()), []),
  timeout_secs: v.optional(seconds),
  max_output_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_048_576))),
  no_output_timeout_secs: v.optional(seconds),
})

export interface ExecLimits {
  /** Whether it may run programs at all, whatever its patterns. */
  permits(names: readonly string[]): boolean
  readonly timeoutSecs: number
  readonly silenceSecs: number
  readonly outputBytes: number
}
export interface ExecDefaults {
  readonly timeoutSecs: number
  readonly silenceSecs: number
  readonly outputBytes: number
}

/** The `exec_policy` of a manifest narrows what its patterns allow; one that cannot be read allows nothing. */
export function readExecPolicy(table: unknown, defaults: ExecDefaults): ExecLimits {
  if (table === undefined) return { ...defaults, permits: () => true }
  const parsed = v.safeParse(ExecPolicy, table)
  if (!parsed.success) return { ...defaults, permits: () => false }
  const { mode, safe_bins, allowed_commands, timeout_secs, max_output_bytes, no_output_timeout_secs } = parsed.output
  const listed = new Set([...safe_bins, ...allowed_commands])
  return {
    permits: (names) => mode === 'full' || (mode === 'allowlist' && listed.has(names[0] ?? '')),
    timeoutSecs: timeout_secs ?? defaults.timeoutSecs,
    silenceSecs: no_output_timeout_secs ?? defaults.silenceSecs,
    outputBytes: Math.min(max_output_bytes ?? defaults.outputBytes, defaults.outputBytes),
  }
}
