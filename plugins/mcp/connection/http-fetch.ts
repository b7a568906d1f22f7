import { monotonicClock } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { ServerConfig } from '../servers/spec.ts'

/** A stream of events is silent for as long as the server has nothing to say. */
const STREAM_IDLE_MS = 86_400_000
const NEWLINE = 10
const RETURN = 13

export interface HttpLimits {
  readonly maxMessageBytes: number
  readonly maxMessagesPerSecond: number
  /** Until the answer has begun, and from then until it is whole, unless it is a stream of events. */
  readonly answerTimeoutMs: number
}

export const httpLimits = (
  settings: Settings,
  server: Pick<ServerConfig, 'timeout_secs' | 'tool_timeout_secs'>,
): HttpLimits => ({
  maxMessageBytes: settings.max_message_bytes,
  maxMessagesPerSecond: settings.max_messages_per_second,
  answerTimeoutMs:
    Math.max(server.timeout_secs, settings.start_timeout_secs, ...Object.values(server.tool_timeout_secs)) * 1000,
})

/** The guarded fetch as the one of the platform, as far as the transports of the SDK use it. */
export function toPlatformFetch(
  fetch: Fetch,
  limits: HttpLimits,
): (input: string | URL, init?: RequestInit) => Promise<Response> {
  return async (input, init = {}) => {
    const url = new URL(input)
    const headers = new Headers(init.headers)
    const response = await fetch(url, {
      method: init.method ?? 'GET',
      headers: Object.fromEntries(headers),
      ...(init.body !== undefined && init.body !== null && { body: toText(init.body) }),
      ...(init.signal && { signal: init.signal }),
      headersTimeoutMs: limits.answerTimeoutMs,
      idleTimeoutMs: STREAM_IDLE_MS,
      totalTimeoutMs: 0,
      maxBytes: Number.MAX_SAFE_INTEGER,
      check(target) {
        // The headers of the request hold credentials of this server.
        if (target.origin !== url.origin)
          throw new Refusal('forbidden', `The server sent a request on to ${target.origin}: write that address instead`)
      },
    })
    const standard = response.toResponse()
    if (!standard.body) return standard
    // An authorization server that answers with a stream would never end its answer.
    const isStream = [standard.headers.get('content-type'), headers.get('accept')].every((types) =>
      types?.includes('text/event-stream'),
    )
    const bounded = isStream ? standard.body.pipeThrough(boundEvents(limits)) : await readText(standard.body, limits)
    return new JsonResponse(bounded, {
      status: standard.status,
      statusText: standard.statusText,
      headers: standard.headers,
    })
  }
}

/** What walks a value calls itself for each level, so its depth is checked before anything is built. */
class JsonResponse extends Response {
  override async json(): Promise<unknown> {
    return readJson(await this.text())
  }
}

function toText(body: NonNullable<RequestInit['body']>): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new Error('only texts are sent to MCP servers')
}

const tooLarge = (bytes: number): Error =>
  new Error(`the server sent a message of more than plugins.mcp.max_message_bytes (${bytes})`)

/** The whole body, bounded in bytes and in time. */
async function readText(body: ReadableStream<Uint8Array>, limits: HttpLimits): Promise<string> {
  const { maxMessageBytes, answerTimeoutMs } = limits
  const reader = body.getReader()
  const late = Promise.withResolvers<never>()
  const cancel = monotonicClock.after(answerTimeoutMs, () =>
    late.reject(new Error(`the server did not end its answer within ${answerTimeoutMs / 1000} s`)),
  )
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late.promise])
      if (done) return Buffer.concat(chunks).toString()
      bytes += value.length
      if (bytes > maxMessageBytes) throw tooLarge(maxMessageBytes)
      chunks.push(value)
    }
  } catch (error) {
    await reader.cancel(error).catch(() => undefined)
    throw error
  } finally {
    cancel()
  }
}

/** Bounds one event with all of its lines, and the events of a second. */
function boundEvents({ maxMessageBytes, maxMessagesPerSecond }: HttpLimits): TransformStream<Uint8Array, Uint8Array> {
  let inEvent = 0
  let inLine = 0
  let second = 0
  let inSecond = 0
  const readByte = (byte: number): void => {
    // A parser holds what came until the line that is blank. What ends lines otherwise counts as one event.
    if (++inEvent > maxMessageBytes) throw tooLarge(maxMessageBytes)
    if (byte !== NEWLINE) {
      if (byte !== RETURN) inLine++
      return
    }
    if (inLine === 0) {
      inEvent = 0
      inSecond++
    }
    inLine = 0
  }
  return new TransformStream({
    transform(chunk, controller) {
      const now = Math.floor(monotonicClock.now() / 1000)
      if (now !== second) [second, inSecond] = [now, 0]
      for (const byte of chunk) readByte(byte)
      if (inSecond > maxMessagesPerSecond)
        throw new Error(`the server sent more than plugins.mcp.max_messages_per_second (${maxMessagesPerSecond})`)
      controller.enqueue(chunk)
    },
  })
}
