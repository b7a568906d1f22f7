import type { OfflineDeps } from 'svc/internal'
import type { Fetch } from 'svc/sdk'
import type { StoredFiles } from '../stored/store.ts'
import { AccessKeys } from './access-key.ts'
import { Bucket } from './bucket.ts'
import { BucketFiles } from './files.ts'
import { placeOf } from './place.ts'
import type { S3Section } from './section.ts'
import { ObjectStore } from './store.ts'

/** Files with contents in the bucket, for a command and not for a daemon. `isTarget`: new contents go there. */
export function bucketFiles(deps: {
  readonly section: S3Section
  readonly fetch: Fetch
  readonly secret: OfflineDeps['secret']
  readonly db: NonNullable<OfflineDeps['db']>
  readonly rows: StoredFiles
  readonly isTarget: boolean
}): BucketFiles {
  const { section, fetch, secret, db, rows, isTarget } = deps
  const keys = new AccessKeys({ section, vault: { read: secret } })
  const bucket = new Bucket(
    { ...placeOf(section), accessKey: () => keys.find() },
    { fetch, requests: { add: () => undefined }, signal: new AbortController().signal, settled: () => undefined },
  )
  return new BucketFiles({
    rows,
    objects: new ObjectStore(db),
    bucket,
    minObjectBytes: isTarget ? section.min_object_bytes : Infinity,
    now: () => new Date(),
  })
}
