import { ReadableStream } from 'node:stream/web'
import * as v from 'valibot'
import type { OutboundRequest, OutboundResponse } from '../../net/fetch.ts'
import { omitUndefined } from '../../schema/object.ts'
import { readJson } from '../../schema/nesting.ts'

const Request = v.object({
  method: v.optional(v.string()),
  headers: v.optional(v.record(v.string(), v.string())),
  body: v.optional(v.union([v.string(), v.instance(Uint8Array)])),
  headersTimeoutMs: v.optional(v.number()),
  idleTimeoutMs: v.optional(v.number()),
  totalTimeoutMs: v.optional(v.number()),
  maxBytes: v.optional(v.number()),
})
/** A request of the other process. */
export function readRequest(request: unknown): OutboundRequest {
  return omitUndefined(v.parse(Request, request)) as OutboundRequest
}
/** The part of a request that crosses. */
export function sendableRequest(request: OutboundRequest): object {
  return Object.fromEntries(Object.keys(Request.entries).map((key) => [key, request[key as keyof OutboundRequest]]))
}

const noBody = async function* (): AsyncGenerator<Uint8Array> {}
/** The body crosses as it arrives. */
export function toAnswer(answer: OutboundResponse): object {
  const { headers, body } = answer.toResponse()
  return { status: answer.status, url: answer.url, headers: [...headers], body: body ?? noBody() }
}

interface RemoteAnswer {
  readonly status: number
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: AsyncIterable<Uint8Array>
}
export function toResponse(answer: unknown): OutboundResponse {
  const { status, url, headers, body } = answer as RemoteAnswer
  const bytes = async (): Promise<Uint8Array> => new Uint8Array(Buffer.concat(await Array.fromAsync(body)))
  const text = async (): Promise<string> => new TextDecoder().decode(await bytes())
  return {
    status,
    ok: status >= 200 && status < 300,
    url,
    header: (name) => headers.find(([one]) => one === name.toLowerCase())?.[1],
    chunks: () => body,
    text,
    json: async () => readJson(await text()),
    bytes,
    toResponse: () =>
      new Response(status === 204 || status === 304 ? null : (ReadableStream.from(body) as unknown as BodyInit), {
        status,
        headers: headers.map(([name, value]) => [name, value] as [string, string]),
      }),
  }
}
