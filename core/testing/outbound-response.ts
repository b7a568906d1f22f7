import { UpstreamFailure } from '../errors/error.ts'
import type { OutboundResponse } from '../net/fetch.ts'
import { readJson } from '../schema/nesting.ts'

/** Makes what `ctx.fetch` resolves to from the `Response` that a test answers with. */
export function toOutboundResponse(response: Response, url: URL): OutboundResponse {
  const { status, ok, headers } = response
  return {
    status,
    ok,
    url: url.href,
    header: (name) => headers.get(name) ?? undefined,
    async *chunks() {
      if (response.body) yield* response.body
    },
    text: () => response.text(),
    bytes: async () => new Uint8Array(await response.arrayBuffer()),
    async json() {
      try {
        return readJson(await response.text())
      } catch (cause) {
        throw new UpstreamFailure(url.hostname, `${url.hostname} answered ${status} with something that is not JSON`, {
          reason: 'malformed',
          retry: 'never',
          cause,
        })
      }
    },
    toResponse: () => response,
  }
}
