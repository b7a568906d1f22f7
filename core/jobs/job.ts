/** Recurring work of a plugin. Runs never overlap with themselves; a failure is logged and the next run happens. */
export interface Jobs {
  /** Five-field cron expression, UTC. */
  cron(label: string, expression: string, run: (signal: AbortSignal) => Promise<void>): void
  /** Runs every `ms` milliseconds, for the first time after that time. */
  every(label: string, ms: number, run: (signal: AbortSignal) => Promise<void>): void
}
