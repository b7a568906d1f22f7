import { readVariable } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Counter, Fetch, Jobs, Logger, PluginDatabase } from 'svc/sdk'
import type { StoredFiles } from '../stored/store.ts'
import { Bucket } from './bucket.ts'
import { BucketFiles } from './files.ts'
import type { S3Section } from './section.ts'
import { ObjectStore } from './store.ts'
import { sweepObjects } from './sweep.ts'

export interface OpenBucketDeps {
  readonly section: S3Section
  /** Whether new contents go there; otherwise it is read for those that do already. */
  readonly isMount: boolean
  readonly rows: StoredFiles
  readonly daemon: Pick<Daemon, 'setImpaired'>
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
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const CHECK_MS = 60_000

/** A bucket that does not answer impairs the daemon, which starts all the same. Throws when the key is not configured. */
export function openBucket(deps: OpenBucketDeps): BucketFiles {
  const { daemon, home, db, fetch, isMount, jobs, log, own, requests, rows, run, section, signal } = deps
  let problem: string | undefined
  const settled = (found: string | undefined): void => {
    if (found === problem) return
    if (found === undefined) log.info('the bucket answers again')
    else log.error(found)
    problem = found
    daemon.setImpaired('files', found)
  }
  own('state of the bucket', () => daemon.setImpaired('files', undefined))
  const bucket = new Bucket(optionsOf(section), { fetch, requests, signal, settled })
  const objects = new ObjectStore(db)
  /** A failure of the bucket itself is told by `settled`. */
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof Refusal) && !signal.aborted) throw error
    }
  }
  const check = (): Promise<void> =>
    attempt(async () => {
      const key = `.check/${home}`
      await bucket.put(key, Buffer.from(home))
      const read = await bucket.get(key, 1_024)
      await bucket.remove(key)
      if (!read || Buffer.from(read).toString() !== home)
        settled(`The bucket "${section.bucket}" (plugins.files.s3) does not have what was written a moment ago`)
    })
  void run(check)
  jobs.every('bucket', CHECK_MS, async () => {
    if (problem !== undefined) await check()
  })
  jobs.every('unused-objects', HOUR_MS, () =>
    attempt(async () => {
      const keepUnusedMs = section.keep_unused_days * DAY_MS
      const count = await sweepObjects({ objects, bucket, keepUnusedMs, now: () => Date.now() })
      if (count > 0) log.info(`${count} objects that no file names were deleted from the bucket`)
    }),
  )
  const minObjectBytes = isMount ? section.min_object_bytes : Infinity
  return new BucketFiles({ rows, objects, bucket, minObjectBytes, now: () => new Date() })
}

function optionsOf(section: S3Section) {
  const { bucket, region } = section
  const endpoint = new URL(
    section.endpoint ?? `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
  )
  // A certificate for names of buckets does not hold for one with a dot.
  const isPath = section.path_style ?? (section.endpoint !== undefined || bucket.includes('.'))
  if (!isPath && /^(?:[\d.]+|\[.*\])$/.test(endpoint.hostname))
    throw new Error('plugins.files.s3.path_style = false needs an endpoint with a name, which the bucket stands before')
  const base = isPath ? new URL(`/${bucket}/`, endpoint) : new URL(`${endpoint.protocol}//${bucket}.${endpoint.host}/`)
  const credentials = omitUndefined({
    accessKeyId: required('access_key_id', section.access_key_id, section.access_key_id_env),
    secretAccessKey: required('secret_access_key', section.secret_access_key, section.secret_access_key_env),
    // One of the environment does not belong to a key of the file.
    sessionToken: section.access_key_id === undefined ? readVariable(section.session_token_env) : undefined,
  })
  const { timeout_ms: timeoutMs, attempts, prefix } = section
  return { bucket, host: endpoint.host, base, region, prefix, credentials, timeoutMs, attempts }
}

function required(key: string, value: string | undefined, variable: string): string {
  const found = value ?? readVariable(variable)?.trim()
  if (found !== undefined && found !== '') return found
  throw new Error(`plugins.files.s3.${key} is missing: set it, or the variable ${variable}`)
}
