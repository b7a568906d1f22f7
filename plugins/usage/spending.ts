import type { Claim, SpendLimits, Spending, Spent } from './contract.ts'
import type { UsageStore } from './store.ts'

/** Records of one addition to the sums, so that the first one on an old database does not block for long. */
const SLICE = 20_000

/**
 * The sums follow the records: each claim adds the records since the last one, in its own transaction, so writing a
 * record costs nothing more, and a claim reads a handful of sums however many records there are.
 */
export function createSpending(store: UsageStore, now: () => number): Spending {
  const iso = (): string => new Date(now()).toISOString()
  let caughtUp: Promise<void> | undefined
  async function catchUp(): Promise<void> {
    while ((await store.fold(SLICE)) >= SLICE) {
      /* Each slice is a write of its own. */
    }
  }
  const ready = (): Promise<void> =>
    (caughtUp ??= catchUp().catch((error: unknown) => {
      caughtUp = undefined
      throw error
    }))

  return {
    async spent(agentId = ''): Promise<Spent> {
      await ready()
      return store.spent(agentId, iso())
    },
    async claim(claim: Claim, limits: { readonly all: SpendLimits; readonly agent: SpendLimits }): Promise<boolean> {
      await ready()
      return store.claim(claim, limits, iso(), SLICE)
    },
    release: (id) => store.release(id),
    async total(agentId) {
      await ready()
      return store.total(agentId)
    },
    async ranking() {
      await ready()
      return store.ranking(iso())
    },
    formerNames: () => store.formerNames(),
  }
}
