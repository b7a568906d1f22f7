import { isObjectKey } from './bucket.ts'
import type { Bucket } from './bucket.ts'
import type { ObjectStore } from './store.ts'

export interface SweepDeps {
  readonly objects: ObjectStore
  readonly bucket: Pick<Bucket, 'remove'>
  readonly keepUnusedMs: number
  readonly now: () => number
}

/** No write takes this long: its object is named by then, or never. */
const WRITE_MS = 86_400_000
const BATCH = 100

/** Deletes objects that no file has named for long enough. Several daemons may do it at once. */
export async function sweepObjects({ objects, bucket, keepUnusedMs, now }: SweepDeps): Promise<number> {
  const time = now()
  await objects.markUnused(new Date(time - WRITE_MS).toISOString(), new Date(time).toISOString())
  const before = new Date(time - keepUnusedMs).toISOString()
  for (let count = 0; ;) {
    const keys = await objects.unusedSince(before, BATCH)
    for (const key of keys) {
      if (isObjectKey(key)) await bucket.remove(key)
      await objects.forget(key)
    }
    count += keys.length
    if (keys.length < BATCH) return count
  }
}
