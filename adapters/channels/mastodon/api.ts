import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, pause, trimSlashes } from 'svc/channels'
import type { ChannelLink, OutboundAttachment } from 'svc/channels'
import type { MastodonConfig } from './config.ts'
import { encodePost } from './encode.ts'
import type { PostFields } from './encode.ts'
import { findError } from './errors.ts'
import { Account, Context, Instance, MentionList, Sent, Upload } from './wire.ts'

const PAGE = 40
const UPLOAD_TIMEOUT_MS = 120_000
const PROCESSING_CHECK_MS = 2000
const MAX_PROCESSING_CHECKS = 30

/** The requests of one account. */
export class MastodonApi {
  readonly #link: ChannelLink<MastodonConfig>
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<MastodonConfig>) {
    const { base_url: base, token } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    const common = {
      system: 'mastodon',
      findError: (answer: Parameters<typeof findError>[0]) => findError(answer, link.now()),
      secrets: [token],
    }
    this.#client = new ApiClient(link, {
      ...common,
      authenticate: () => ({ authorization: `Bearer ${token}` }),
      refuseRedirects: true,
    })
    // Files are public, and mostly on another host than the instance.
    this.#files = new ApiClient(link, common)
  }

  me = () => this.#client.json(`${this.#base}/api/v1/accounts/verify_credentials`, {}, Account, 'the account')

  instance = () => this.#client.json(`${this.#base}/api/v2/instance`, {}, Instance, 'the instance')

  account = (id: string) =>
    this.#client.json(`${this.#base}/api/v1/accounts/${encodeURIComponent(id)}`, {}, Account, 'an account')

  /** The newest mention, or those after one. The newest come first. */
  mentions = (after: string | undefined) =>
    this.#client.json(
      `${this.#base}/api/v1/notifications?types[]=mention&${after === undefined ? 'limit=1' : `limit=${PAGE}&min_id=${encodeURIComponent(after)}`}`,
      {},
      MentionList,
      'the list of mentions',
    )

  context = (id: string) =>
    this.#client.json(`${this.#base}/api/v1/statuses/${encodeURIComponent(id)}/context`, {}, Context, 'a thread')

  /** The server keeps the key for an hour, and answers with the post that was made with it. */
  async post(fields: PostFields, key: string): Promise<string> {
    const request = { json: encodePost(fields), headers: { 'idempotency-key': key } }
    return (await this.#client.json(`${this.#base}/api/v1/statuses`, request, Sent, 'the sent post')).id
  }

  async delete(id: string): Promise<void> {
    const url = `${this.#base}/api/v1/statuses/${encodeURIComponent(id)}`
    await ignoreMissing(this.#client.open(url, { method: 'DELETE' }))
  }

  /** The id of the file, when the server has processed it. */
  async upload(file: OutboundAttachment): Promise<string> {
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    form.set('description', file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    let upload = await this.#client.json(`${this.#base}/api/v2/media`, request, Upload, 'the uploaded file')
    for (let check = 0; upload.url == null; check++) {
      if (check === MAX_PROCESSING_CHECKS || !(await pause(this.#link, PROCESSING_CHECK_MS, this.#link.signal)))
        throw new UpstreamFailure('mastodon', 'mastodon did not process a file in time', {
          reason: 'timeout',
          retry: 'later',
        })
      const url = `${this.#base}/api/v1/media/${encodeURIComponent(upload.id)}`
      upload = await this.#client.json(url, {}, Upload, 'the uploaded file')
    }
    return upload.id
  }

  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }
}
