import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ApiRequest, ChannelLink } from 'svc/channels'
import type { TelegramConfig } from './config.ts'
import { Failure } from './wire.ts'

export type Link = ChannelLink<TelegramConfig>

/** A group became a supergroup, which has another id. */
export class ChatMigrated extends UpstreamFailure {
  readonly chatId: string
  constructor(chatId: string) {
    super('telegram', 'telegram: the group became a supergroup', { reason: 'invalid_request', retry: 'never' })
    this.chatId = chatId
  }
}

/** Calls methods of the Bot API. The token is a part of every address, so no failure contains it. */
export class BotApi {
  readonly #client: ApiClient
  readonly #base: string
  readonly #token: string

  constructor(link: Link) {
    const { token, base_url } = link.config
    this.#base = trimSlashes(base_url)
    this.#token = token
    this.#client = new ApiClient(link, {
      system: 'telegram',
      secrets: [token, encodeURIComponent(token)],
      findError,
      refuseRedirects: true,
    })
  }

  call<S extends v.GenericSchema>(method: string, request: ApiRequest, schema: S): Promise<v.InferOutput<S>> {
    return this.#client.json(`${this.#base}/bot${this.#token}/${method}`, request, schema, `the answer to ${method}`)
  }

  /** The content of a file by the path that `getFile` returns. */
  download(path: string, signal: AbortSignal): Promise<OutboundResponse> {
    const encoded = path.split('/').map(encodeURIComponent).join('/')
    return this.#client.open(`${this.#base}/file/bot${this.#token}/${encoded}`, { signal, streamIdleMs: 30_000 })
  }
}

function findError({ body, status }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { error_code: code, description, parameters } = parsed.output
  if (parameters.migrate_to_chat_id !== undefined) throw new ChatMigrated(String(parameters.migrate_to_chat_id))
  // A token that never existed is a path that does not exist.
  if (code === 401 || (code === 404 && description === 'Not Found')) return { message: description, reason: 'auth' }
  if (code === 409) return { message: description, reason: 'overloaded', retry: 'later' }
  return {
    message: description,
    retryAfterSecs: parameters.retry_after,
    ...(status < 400 && { reason: code === 429 ? ('rate_limit' as const) : ('invalid_request' as const) }),
  }
}
