import type { Part, Turn } from 'svc/providers'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Message } from '../../sessions/contract.ts'

/** Converted messages. They are converted once: every turn of a session needs its messages again. */
const converted = new WeakMap<Message, readonly Turn[]>()
/** The last conversion: a turn asks for its own twice in a row. */
let latest: { readonly messages: readonly Message[]; readonly turns: readonly Turn[] } | undefined

/**
 * Stored messages as a provider takes them. `resumed` is a turn that continues: only its own answers keep the data that
 * their provider wants back.
 */
export function toTurns(messages: readonly Message[], resumed?: string): readonly Turn[] {
  if (resumed !== undefined)
    return messages.flatMap((message) =>
      message.turnId === resumed ? convert(message).map((turn) => withReplay(turn, message)) : toTurns([message]),
    )
  if (latest?.messages === messages) return latest.turns
  const turns: Turn[] = []
  for (const message of messages) {
    let own = converted.get(message)
    if (!own) converted.set(message, (own = convert(message)))
    for (const turn of own) turns.push(turn)
  }
  latest = { messages, turns }
  return turns
}

function convert(message: Message): readonly Turn[] {
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
    // Notes of the daemon go to the model beside the user's words.
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

type ModelName = Pick<ResolvedModel, 'provider' | 'model'>
/** Characters of replay data that are kept; more is dropped, and the answer itself stays. */
const MAX_REPLAY_CHARS = 1_048_576

/**
 * Tags the data that a provider wants back with its name, since no other provider may get it. Too much data becomes
 * `''`.
 */
export function tagReplay(of: ModelName, replay: string): string {
  return replay.length > MAX_REPLAY_CHARS ? '' : replayTag(of) + replay
}

/** The same turns; replay data for this model is untagged, that for other models removed. */
export function untagReplay(of: ModelName, turns: readonly Turn[]): readonly Turn[] {
  if (!turns.some((turn) => turn.role === 'assistant' && turn.replay !== undefined)) return turns
  const tag = replayTag(of)
  return turns.map((turn): Turn => {
    if (turn.role !== 'assistant' || turn.replay === undefined) return turn
    const { replay, ...plain } = turn
    return replay.startsWith(tag) ? { ...plain, replay: replay.slice(tag.length) } : plain
  })
}

function replayTag({ provider, model }: ModelName): string {
  return `${provider}/${model}\n`
}
