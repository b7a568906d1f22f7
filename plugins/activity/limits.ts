/** Steps whose latencies are measured. */
export const MAX_STEPS = 1000
/** Entries of the log that one request reads at most. */
export const MAX_SCANNED = 10_000
