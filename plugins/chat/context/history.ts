import type { Part, Turn } from 'svc/providers'
import type { Message } from '../../sessions/contract.ts'

/** The turns of messages that are asked for again with every turn of their session; they go with their messages. */
const known = new WeakMap<Message, readonly Turn[]>()
/** The last list that was asked for: a turn asks for its own twice in a row. */
let latest: { readonly messages: readonly Message[]; readonly turns: readonly Turn[] } | undefined

/**
 * Stored messages as a provider takes them. With the id of a turn that goes on, its own answers carry what their provider wants back;
 * those of other turns never do.
 */
export function toTurns(messages: readonly Message[], running?: string): readonly Turn[] {
  if (running !== undefined)
    return messages.flatMap((message) =>
      message.turnId === running ? toOwn(message).map((turn) => withReplay(turn, message)) : toTurns([message]),
    )
  if (latest?.messages === messages) return latest.turns
  const turns: Turn[] = []
  for (const message of messages) {
    let own = known.get(message)
    if (!own) known.set(message, (own = toOwn(message)))
    for (const turn of own) turns.push(turn)
  }
  latest = { messages, turns }
  return turns
}

function toOwn(message: Message): readonly Turn[] {
  switch (message.role) {
    case 'user':
      return [
        {
          role: 'user',
          parts: message.blocks.flatMap((block): Part[] =>
            block.type === 'text' || block.type === 'image' ? [block] : [],
          ),
        },
      ]
    case 'assistant':
      return [
        {
          role: 'assistant',
          text: message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n'),
          calls: message.blocks.flatMap((block) =>
            block.type === 'call' ? [{ id: block.id, name: block.tool, args: block.args }] : [],
          ),
        },
      ]
    case 'tool':
      return message.blocks.flatMap((block): Turn[] =>
        block.type === 'result'
          ? [{ role: 'tool', callId: block.callId, tool: block.tool, text: block.text, failed: block.failed }]
          : [],
      )
    // What the daemon notes of a conversation is told beside what the user says.
    case 'system':
      return [{ role: 'user', parts: message.blocks.filter((block) => block.type === 'text') }]
  }
}

function withReplay(turn: Turn, { blocks }: Message): Turn {
  if (turn.role !== 'assistant') return turn
  for (const block of blocks)
    if (block.type === 'call' && block.replay !== undefined) return { ...turn, replay: block.replay }
  return turn
}
