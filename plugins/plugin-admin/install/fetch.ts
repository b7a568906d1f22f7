import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch, OutboundRequest, OutboundResponse } from 'svc/sdk'

/** Throws `service_unavailable` when the other side fails or answers with another status than these. */
export async function fetchFrom(
  fetch: Fetch,
  url: string,
  request: OutboundRequest & { readonly accepts?: readonly number[] },
): Promise<OutboundResponse> {
  const { accepts = [], ...sent } = request
  const response = await orUnavailable(fetch(url, sent))
  if (response.ok || accepts.includes(response.status)) return response
  throw new Refusal('service_unavailable', `${new URL(url).host} answered ${response.status} for ${withoutQuery(url)}`)
}
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof UpstreamFailure ? new Refusal('service_unavailable', error.message, { cause: error }) : error
  }
}

/** A query may hold a token. */
export function withoutQuery(address: string): string {
  const url = URL.parse(address)
  return url ? `${url.origin}${url.pathname}` : address
}
