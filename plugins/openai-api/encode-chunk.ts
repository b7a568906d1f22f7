import type { EventStream, ServerSentEvent } from 'svc/sdk'
import type { AcceptedTurn, TurnResult } from '../chat/contract.ts'
import { encodeUsage, finishReason } from './encode-completion.ts'
import type { Head } from './encode-completion.ts'

/** The role first, then text, then the reason and the usage, then `[DONE]`. `ended` is awaited before the last two. */
export function encodeChunks(
  head: Head,
  turn: Pick<AcceptedTurn, 'events'>,
  ended: (result: TurnResult) => Promise<void>,
): EventStream {
  return Object.assign(chunks(head, turn, ended), { holdsStatus: true as const })
}

async function* chunks(
  head: Head,
  turn: Pick<AcceptedTurn, 'events'>,
  ended: (result: TurnResult) => Promise<void>,
): AsyncGenerator<ServerSentEvent> {
  const start =
    `{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},` +
    `"model":${JSON.stringify(head.model)},"choices":[{"index":0,"delta":`
  const warnings = head.warnings.length > 0 ? `,"warnings":${JSON.stringify(head.warnings)}` : ''
  yield { data: `${start}{"role":"assistant"},"finish_reason":null}]}`, provisional: true }
  for await (const event of turn.events()) {
    if (event.type === 'reasoning')
      yield { data: `${start}{"reasoning_content":${JSON.stringify(event.delta)}},"finish_reason":null}]}` }
    else if (event.type === 'text')
      yield { data: `${start}{"content":${JSON.stringify(event.delta)}},"finish_reason":null}]}` }
    else if (event.type === 'end') {
      await ended(event.result)
      const usage = JSON.stringify(encodeUsage(event.result))
      yield { data: `${start}{},"finish_reason":"${finishReason(event.result)}"}],"usage":${usage}${warnings}}` }
    }
  }
  yield { data: '[DONE]' }
}
