import { followChanges } from 'svc/internal'
import type { Broadcast, Daemon } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Counter, Fetch, Jobs, Logger, PluginDatabase, Vault } from 'svc/sdk'
import type { StoredFiles } from '../stored/store.ts'
import { AccessKeys, KEY_TOPIC } from './access-key.ts'
import { Bucket } from './bucket.ts'
import { describeAhead } from './failures.ts'
import { BucketFiles } from './files.ts'
import { placeOf } from './place.ts'
import type { S3Section } from './section.ts'
import { ObjectStore } from './store.ts'
import { sweepObjects } from './sweep.ts'
import { tryBucket } from './try-bucket.ts'

export interface OpenBucketDeps {
  readonly section: S3Section
  /** Whether new contents go there; otherwise it is read for those that do already. */
  readonly isMount: boolean
  readonly rows: StoredFiles
  readonly broadcast: Broadcast
  readonly daemon: Pick<Daemon, 'setImpaired' | 'setWarnings'>
  /** Id of the home of this daemon. */
  readonly home: string
  readonly db: PluginDatabase
  readonly fetch: Fetch
  readonly jobs: Jobs
  readonly log: Logger
  readonly own: (label: string, dispose: () => void) => void
  readonly requests: Counter
  readonly run: (work: () => Promise<void>) => Promise<void>
  readonly signal: AbortSignal
  readonly vault: Vault
}
export interface OpenedBucket {
  readonly files: BucketFiles
  /** Its access key was stored or removed by this daemon. */
  readonly keyChanged: () => void
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const CHECK_MS = 60_000
/** Amazon refuses requests of a clock that differs by a quarter of an hour. */
const MAX_AHEAD_SECS = 300

/** A bucket that does not answer, or has no access key yet, impairs the daemon, which starts all the same. */
export function openBucket(deps: OpenBucketDeps): OpenedBucket {
  const { daemon, home, db, fetch, isMount, jobs, log, own, requests, rows, run, section, signal, vault } = deps
  let problem: string | undefined
  const settled = (found: string | undefined): void => {
    if (found === problem) return
    if (found === undefined) log.info('the bucket answers again')
    else log.error(found)
    problem = found
    daemon.setImpaired('files', found)
  }
  own('state of the bucket', () => {
    daemon.setImpaired('files', undefined)
    daemon.setWarnings('files', [])
  })
  const keys = new AccessKeys({ section, vault })
  const bucket = new Bucket({ ...placeOf(section), accessKey: () => keys.find() }, { fetch, requests, signal, settled })
  const objects = new ObjectStore(db)
  /** A failure of the bucket itself is told by `settled`. */
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof Refusal) && !signal.aborted) throw error
    }
  }
  const isOff = (): boolean => Math.abs(bucket.aheadSecs) > MAX_AHEAD_SECS
  const check = (): Promise<void> =>
    attempt(async () => {
      try {
        await tryBucket(bucket, home, section.bucket)
        const warning = `the clock of this machine is ${describeAhead(bucket.aheadSecs)} that of the bucket: set it`
        daemon.setWarnings('files', isOff() ? [warning] : [])
      } catch (error) {
        if (error instanceof Refusal) settled(error.message)
        throw error
      }
    })
  const keyChanged = (): void => void run(check)
  followChanges(deps, KEY_TOPIC, keyChanged)
  void run(check)
  jobs.every('bucket', CHECK_MS, async () => {
    if (problem !== undefined || isOff()) await check()
  })
  jobs.every('unused-objects', HOUR_MS, () =>
    attempt(async () => {
      const keepUnusedMs = section.keep_unused_days * DAY_MS
      const count = await sweepObjects({ objects, bucket, keepUnusedMs, now: () => Date.now() })
      if (count > 0) log.info(`${count} objects that no file names were deleted from the bucket`)
    }),
  )
  const minObjectBytes = isMount ? section.min_object_bytes : Infinity
  const files = new BucketFiles({ rows, objects, bucket, minObjectBytes, now: () => new Date() })
  return { files, keyChanged }
}
