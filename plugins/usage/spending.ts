import type { PluginDatabase } from 'svc/sdk'
import type { Claim, ClaimLimits, Spending, Spent } from './contract.ts'
import type { SpendingStore } from './spending/store.ts'
import type { UsageStore } from './store.ts'

/** Records of one addition to the sums, so that the first one on an old database does not block for long. */
const SLICE = 20_000

/**
 * The sums follow the records: each claim adds the records since the last one, in its own transaction, so writing a
 * record costs nothing more, and a claim reads a handful of sums however many records there are.
 */
export function createSpending(db: PluginDatabase, records: UsageStore, now: () => number): Spending {
  const iso = (): string => new Date(now()).toISOString()
  let opened: Promise<SpendingStore> | undefined
  async function open(): Promise<SpendingStore> {
    const { SpendingStore } = await import('./spending/store.ts')
    const store = new SpendingStore(db)
    while ((await store.fold(SLICE)) >= SLICE) {
      /* Each slice is a write of its own. */
    }
    return store
  }
  const ready = (): Promise<SpendingStore> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined
      throw error
    }))

  return {
    async spent(agentId = ''): Promise<Spent> {
      return (await ready()).spent(agentId, iso())
    },
    async claim(claim: Claim, limits: ClaimLimits): Promise<boolean> {
      return (await ready()).claim(claim, limits, iso(), SLICE)
    },
    release: (id) => records.release(id),
    async total(agentId) {
      return (await ready()).total(agentId)
    },
    async ranking() {
      return (await ready()).ranking(iso())
    },
    formerNames: () => records.formerNames(),
  }
}
