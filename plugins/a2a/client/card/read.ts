import { Refusal, UpstreamFailure, isObject } from 'svc/sdk'
import type { Fetch, OutboundResponse } from 'svc/sdk'
import { cardAddresses } from '../address.ts'
import type { ClientSettings } from '../config.ts'

export interface ReadCardOptions {
  readonly fetch: Fetch
  readonly settings: Pick<ClientSettings, 'card_max_bytes' | 'card_timeout_ms'>
  readonly signal?: AbortSignal | undefined
}

const HEADERS = { accept: 'application/json', 'a2a-version': '1.0' } as const

/** Reads the card of an agent. Rejects with `UpstreamFailure` when there is none, and `forbidden` for its address. */
export async function readCard(url: string, options: ReadCardOptions): Promise<Readonly<Record<string, unknown>>> {
  const addresses = cardAddresses(url)
  for (const [at, address] of addresses.entries()) {
    const answer = await request(address, options)
    if (answer.ok) return parse(answer, new URL(url).host)
    await answer.bytes().catch(() => undefined)
    const isLast = at === addresses.length - 1
    if (!isLast && (answer.status === 404 || answer.status === 405)) continue
    throw new UpstreamFailure(new URL(url).host, `${address} answered ${answer.status}: no card is there`, {
      reason: answer.status === 404 ? 'not_found' : 'server_error',
      retry: 'later',
    })
  }
  throw new Refusal('invalid_request', 'url: no card can be there')
}

function request(address: string, { fetch, settings, signal }: ReadCardOptions): Promise<OutboundResponse> {
  return fetch(address, {
    headers: HEADERS,
    maxBytes: settings.card_max_bytes,
    totalTimeoutMs: settings.card_timeout_ms,
    headersTimeoutMs: settings.card_timeout_ms,
    ...(signal && { signal }),
  })
}

async function parse(answer: OutboundResponse, host: string): Promise<Readonly<Record<string, unknown>>> {
  const card = await answer.json()
  if (isObject(card)) return card
  throw new UpstreamFailure(host, `${answer.url} is no card: expected a JSON object`, {
    reason: 'malformed',
    retry: 'never',
  })
}
