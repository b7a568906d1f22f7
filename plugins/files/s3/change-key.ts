import { homeId } from 'svc/internal'
import type { Broadcast, Daemon } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { PluginContext, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Limits } from '../schema.ts'
import { isStored, KEY_TOPIC, removeKey, storeKey } from './access-key.ts'
import type { AccessKey } from './access-key.ts'
import { Bucket } from './bucket.ts'
import { placeOf } from './place.ts'
import { tryBucket } from './try-bucket.ts'

export interface KeyChangesDeps extends Pick<
  PluginContext<Limits, {}, {}>,
  'config' | 'fetch' | 'operator' | 'signal'
> {
  readonly audit: Pick<Audit, 'entry'>
  readonly broadcast: Broadcast
  readonly daemon: Pick<Daemon, 'config'>
  readonly vault: Vault
  /** This daemon does not hear itself. */
  readonly changed: () => void
}

/** Stores and removes the access key of the bucket. */
export class KeyChanges {
  readonly #deps: KeyChangesDeps
  constructor(deps: KeyChangesDeps) {
    this.#deps = deps
  }

  /** Durable when it settles; the name of the bucket. Throws `invalid_request` for a key that does not work. */
  async store(key: AccessKey): Promise<string> {
    const { vault } = this.#deps
    const { bucket } = this.#section()
    await this.#try(key)
    const what = `the access key of the bucket "${bucket}" of files was stored: ${key.accessKeyId}`
    await storeKey(vault, key, this.#entries(what))
    this.#deps.changed()
    return bucket
  }
  /** The name of the bucket. Throws `conflict` when none is stored. */
  async remove(): Promise<string> {
    const { vault, changed } = this.#deps
    const { bucket } = this.#section()
    if (!(await isStored(vault))) throw new Refusal('conflict', `No access key of the bucket "${bucket}" is stored`)
    await removeKey(vault, this.#entries(`the stored access key of the bucket "${bucket}" of files was removed`))
    changed()
    return bucket
  }

  async #try(key: AccessKey): Promise<void> {
    const { config, daemon, fetch, operator, signal } = this.#deps
    const bucket = new Bucket(
      { ...placeOf(this.#section()), accessKey: async () => key },
      {
        fetch: operator?.fetch ?? fetch,
        signal,
        // What comes of this key says nothing of the one in use.
        requests: { add: () => undefined },
        settled: () => undefined,
      },
    )
    try {
      await tryBucket(bucket, `key-${homeId(daemon.config())}`, config.s3?.bucket ?? '')
    } catch (error) {
      if (!(error instanceof Refusal) || error.retryAfterSecs !== undefined) throw error
      throw new Refusal('invalid_request', `The key was not stored, since it does not work: ${error.message}`, {
        cause: error,
      })
    }
  }
  #section() {
    const { s3 } = this.#deps.config
    if (s3) return s3
    throw new Refusal('conflict', 'There is no bucket: set [plugins.files.s3] in the configuration file first')
  }
  #entries(details: string) {
    const { audit, broadcast } = this.#deps
    return [audit.entry({ event: 'config_change', details }), ...broadcast.tell(KEY_TOPIC, '')]
  }
}
