import type * as v from 'valibot'
import type { OutboundResponse } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink } from 'svc/channels'
import type { WhatsAppConfig } from './config.ts'
import { findError } from './errors.ts'

/** Calls the Graph API. */
export class CloudApi {
  readonly #client: ApiClient
  readonly #base: string
  readonly #phoneId: string

  constructor(link: ChannelLink<WhatsAppConfig>) {
    const { token = '', phone_number_id = '', app_secret = '', verify_token = '', base_url, api_version } = link.config
    this.#base = `${trimSlashes(base_url)}/${api_version}`
    this.#phoneId = phone_number_id
    this.#client = new ApiClient(link, {
      system: 'whatsapp',
      authenticate: () => ({ authorization: `Bearer ${token}` }),
      findError,
      secrets: [token, app_secret, verify_token],
      refuseRedirects: true,
    })
  }

  phonePath(path: string): string {
    return `/${this.#phoneId}${path}`
  }
  call<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S): Promise<v.InferOutput<S>> {
    return this.#client.json(this.#base + path, request, schema, 'an answer')
  }
  open(url: string, request: ApiRequest): Promise<OutboundResponse> {
    return this.#client.open(url, request)
  }
}
