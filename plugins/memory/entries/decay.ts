const DAY_MS = 86_400_000

/** What a confidence is worth after some time, and what use gives back: API facts 2.6. Times in milliseconds. */
export function strengthOf(
  memory: { readonly confidence: number; readonly accessCount: number; readonly accessedAt: number },
  rate: number,
  now: number,
): number {
  const days = (now - memory.accessedAt) / DAY_MS
  // A note that was never used as a memory has no time of use: it does not decay.
  if (days <= 1 || memory.accessedAt <= 0) return memory.confidence
  const decayed = memory.confidence * Math.exp(-rate * days)
  return memory.accessCount > 1 ? Math.min(decayed * (1 + Math.log2(memory.accessCount)), 1) : decayed
}
