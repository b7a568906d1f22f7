import type { EventStream } from 'svc/sdk'
import type { AcceptedTurn } from '../chat/contract.ts'
import { encodeUsage, finishReason } from './encode-completion.ts'
import type { Head } from './encode-completion.ts'

/** The role first, then text, then the reason and the usage, then `[DONE]`. Whoever stops reading cancels the turn. */
export async function* encodeChunks(head: Head, turn: AcceptedTurn): EventStream {
  const start = `{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[{"index":0,"delta":`
  let ended = false
  try {
    yield { data: `${start}{"role":"assistant"},"finish_reason":null}]}` }
    for await (const event of turn.events()) {
      if (event.type === 'text') yield { data: `${start}{"content":${JSON.stringify(event.delta)}},"finish_reason":null}]}` }
      else if (event.type === 'end') {
        ended = true
        yield { data: `${start}{},"finish_reason":"${finishReason(event.result)}"}],"usage":${JSON.stringify(encodeUsage(event.result))}}` }
      }
    }
    yield { data: '[DONE]' }
  } finally {
    // Here the client asked to stop by leaving: this API has no other way to say it.
    if (!ended) turn.cancel()
  }
}
