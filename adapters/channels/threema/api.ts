import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, RecentMap, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ApiRequest, ChannelLink } from 'svc/channels'
import type { OutboundResponse } from 'svc/sdk'
import type { SealedBox } from './box.ts'
import type { ThreemaConfig } from './config.ts'

const UPLOAD_TIMEOUT_MS = 120_000
const MAX_KEYS = 1000

/** What the statuses mean that do not say it: https://gateway.threema.ch/en/developer/api */
const MEANINGS: Readonly<Record<number, ApiError>> = {
  400: { message: 'the recipient does not exist, or the id is not set up for end-to-end encryption' },
  401: { message: 'the id or the API secret is wrong' },
  402: { message: 'there are no credits left' },
  413: { message: 'the message is too long' },
}

/** The requests of one id. The API takes its secret as a parameter, and nothing else. */
export class ThreemaApi {
  readonly #config: ThreemaConfig
  readonly #client: ApiClient
  readonly #base: string
  /** The key of an id never changes. */
  readonly #keys = new RecentMap<string, Uint8Array>(MAX_KEYS)

  constructor(link: ChannelLink<ThreemaConfig>) {
    const { token, private_key: privateKey, base_url: base } = link.config
    this.#config = link.config
    this.#base = trimSlashes(base)
    const secrets = [token, encodeURIComponent(token), privateKey]
    this.#client = new ApiClient(link, { system: 'threema', findError, secrets, refuseRedirects: true })
  }

  /** The credits that are left. */
  credits = () => this.#read('/credits', /^-?\d{1,15}$/, 'the credits')

  async publicKey(id: string): Promise<Uint8Array> {
    const known = this.#keys.get(id)
    if (known) return known
    const path = `/pubkeys/${encodeURIComponent(id)}`
    const key = Uint8Array.from(Buffer.from(await this.#read(path, /^[0-9a-f]{64}$/i, 'a public key'), 'hex'))
    this.#keys.set(id, key)
    return key
  }

  /** Returns the id of the message. */
  async send(to: string, { nonce, box }: SealedBox): Promise<string> {
    const { threema_id: from, token: secret } = this.#config
    const body = new URLSearchParams({
      from,
      to,
      nonce: Buffer.from(nonce).toString('hex'),
      box: Buffer.from(box).toString('hex'),
      secret,
    })
    const headers = { accept: '*/*', 'content-type': 'application/x-www-form-urlencoded' }
    const request = { method: 'POST', headers, body: body.toString() }
    const response = await this.#client.open(`${this.#base}/send_e2e`, request)
    return matching(await response.text(), /^[0-9a-f]{16}$/i, 'the id of the message')
  }

  /** Returns the id of the encrypted file. */
  async upload(sealed: Uint8Array): Promise<string> {
    const form = new FormData()
    form.set('blob', new Blob([new Uint8Array(sealed)], { type: 'application/octet-stream' }), 'blob')
    const response = await this.#open('/upload_blob', { method: 'POST', form, timeoutMs: UPLOAD_TIMEOUT_MS })
    return matching(await response.text(), /^[0-9a-f]{32}$/i, 'the id of the file')
  }

  download(blob: string, signal: AbortSignal): Promise<OutboundResponse> {
    return this.#open(`/blobs/${blob}`, { signal, streamIdleMs: 30_000 })
  }

  async #read(path: string, form: RegExp, what: string): Promise<string> {
    return matching(await (await this.#open(path, {})).text(), form, what)
  }

  #open(path: string, request: ApiRequest): Promise<OutboundResponse> {
    const { threema_id: from, token: secret } = this.#config
    const query = new URLSearchParams({ from, secret }).toString()
    return this.#client.open(`${this.#base}${path}?${query}`, { ...request, headers: { accept: '*/*' } })
  }
}

/** Answers are texts: a page of a proxy must not be taken for an id. */
function matching(text: string, form: RegExp, what: string): string {
  const value = text.trim()
  if (form.test(value)) return value.toLowerCase()
  throw new UpstreamFailure('threema', `threema sent ${what} in a form that cannot be read`, {
    reason: 'malformed',
    retry: 'later',
  })
}

function findError({ ok, status }: ApiAnswer): ApiError | undefined {
  return ok ? undefined : MEANINGS[status]
}
