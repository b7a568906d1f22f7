const EPOCH = 1_420_070_400_000n

/** Ids of Discord begin with the milliseconds since 2015. `fallback` is for an id that is none. */
export function timeOf(id: string, fallback: number): number {
  return /^\d{1,20}$/.test(id) ? Number((BigInt(id) >> 22n) + EPOCH) : fallback
}
