import type { EventStream } from 'svc/sdk'
import type { AcceptedTurn } from '../chat/contract.ts'
import { encodeUsage, finishReason } from './encode-completion.ts'
import type { Head } from './encode-completion.ts'

/** The role first, then text, then the reason and the usage, then `[DONE]`. */
export async function* encodeChunks(head: Head, turn: AcceptedTurn): EventStream {
  const start = `{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"choices":[{"index":0,"delta":`
  yield { data: `${start}{"role":"assistant"},"finish_reason":null}]}` }
  for await (const event of turn.events()) {
    if (event.type === 'text') yield { data: `${start}{"content":${JSON.stringify(event.delta)}},"finish_reason":null}]}` }
    else if (event.type === 'end') yield { data: `${start}{},"finish_reason":"${finishReason(event.result)}"}],"usage":${JSON.stringify(encodeUsage(event.result))}}` }
  }
  yield { data: '[DONE]' }
}
