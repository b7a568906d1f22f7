import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'

/** Turns the bytes of one streamed answer into events. Holds neither timers nor connections. */
export interface StreamDecoder<Event> {
  /** Whether the last event was read. Absent where only the end of the stream marks the end of the answer. */
  readonly done?: boolean
  /** The events completed by these bytes. */
  feed(bytes: Uint8Array): readonly Event[]
  /** The remaining events. Throws `UpstreamFailure` with `cut` when the answer is incomplete. */
  finish(): readonly Event[]
  /** Reads an answer of `application/json`, which is not a stream; `finish` follows. Absent: it is fed in chunks. */
  decodeWhole?(response: OutboundResponse): Promise<readonly Event[]>
}

/**
 * Sends the request and yields what the decoder reads from the answer. A web page is `malformed`; an abort throws the
 * signal's reason; after the last event nothing fails any more. `system` is named in failures. Ending the iteration
 * early closes the connection.
 */
// One generator without `yield*`: every event passes through each generator, and a stream has tens of thousands.
export async function* readStreamed<Event>(
  system: string,
  decoder: StreamDecoder<Event>,
  signal: AbortSignal,
  send: () => Promise<OutboundResponse>,
): AsyncGenerator<Event> {
  let ended = false
  try {
    const response = await send()
    await rejectWebPage(system, response)
    const isWhole =
      /application\/json/i.test(response.header('content-type') ?? '') && decoder.decodeWhole !== undefined
    if (isWhole) for (const event of (await decoder.decodeWhole?.(response)) ?? []) yield event
    for await (const bytes of isWhole ? [] : response.chunks()) {
      // After the last event the rest is read and dropped, so that the connection can be used again.
      if (ended) continue
      for (const event of decoder.feed(bytes)) yield event
      if (!decoder.done) continue
      const rest = decoder.finish()
      ended = true
      for (const event of rest) yield event
    }
    if (!ended) for (const event of decoder.finish()) yield event
  } catch (error) {
    // The answer is complete: how its connection ends does not matter.
    if (ended) return
    signal.throwIfAborted()
    throw error
  }
}

async function rejectWebPage(system: string, response: OutboundResponse): Promise<void> {
  if (!/html/i.test(response.header('content-type') ?? '')) return
  // Ending the iteration closes the connection.
  for await (const _ of response.chunks()) break
  throw new UpstreamFailure(
    system,
    `${system} answered with a web page: the base URL is wrong or a proxy is in the way`,
    { reason: 'malformed', retry: 'never' },
  )
}
