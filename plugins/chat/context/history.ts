import { HiddenProperty, messageOf } from 'svc/internal'
import * as v from 'valibot'
import type { Part, Turn } from 'svc/providers'
import type { Logger } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Message, Sessions } from '../../sessions/contract.ts'
import type { CompactionConfig } from '../config.ts'
import type { LiveTurn } from '../turn/live-turn.ts'
import type { TurnProgress } from '../turn/progress.ts'
import type { Compactor } from './compactor.ts'
import { countTurn, familyOf, maxTokens } from './window.ts'

/** Messages a turn may add before the next turn compacts the session. */
const MESSAGES_OF_A_TURN = 20

export interface TurnHistoryDeps {
  readonly sessions: Pick<Sessions, 'tail'>
  readonly compactor: Pick<Compactor, 'compact'>
  readonly compaction: CompactionConfig
  readonly historyMessages: number
  readonly log: Pick<Logger, 'warn'>
}
/** The turn that asks for its history, and the model that reads it. */
interface Reader {
  readonly live: LiveTurn
  readonly agent: Agent
  readonly model: ResolvedModel
  readonly progress: TurnProgress
}
/** The stored messages of a session, and the same as a provider takes them. */
export interface ModelHistory {
  readonly messages: readonly Message[]
  readonly turns: readonly Turn[]
}

/** Reads a session for the models of a turn, and has it summarised when it is too long for them. */
export class TurnHistory {
  readonly #deps: TurnHistoryDeps
  constructor(deps: TurnHistoryDeps) {
    this.#deps = deps
  }

  /** The newest messages up to those of the turn. */
  messages(live: LiveTurn, agent: Agent): Promise<readonly Message[]> {
    const { sessions, compaction, historyMessages } = this.#deps
    // More than the compaction threshold, or the messages in between would be neither read nor summarised.
    const { threshold_messages: threshold } = compactionLimits(compaction, agent)
    const limit = Math.max(historyMessages, threshold + MESSAGES_OF_A_TURN)
    return sessions.tail(live.sessionId, live.id, agent.manifest.max_history_messages ?? limit)
  }

  /** The messages for the model. Too many or too long ones are summarised first; nothing is lost when that fails. */
  async forModel(reader: Reader, messages: readonly Message[]): Promise<ModelHistory> {
    const { live } = reader
    const turns = toTurns(messages)
    const reason = this.#compactionReason(reader, messages, turns)
    if (reason === undefined && !live.resumed) return { messages, turns }
    const shown = reason === undefined ? messages : await this.#compact(reader, messages, reason)
    return { messages: shown, turns: toTurns(shown, live.resumed ? live.id : undefined) }
  }

  /** The session summarised for a model that found its window full, or `undefined` when that failed. */
  async afterOverflow({ live, agent, model, progress }: Reader): Promise<readonly Turn[] | undefined> {
    const { compactor, sessions, historyMessages, log } = this.#deps
    const { sessionId, id, signal } = live
    const reason = 'overflow'
    try {
      await compactor.compact({ agent, sessionId, model, before: id, signal, reason, turn: progress })
      return toTurns(await sessions.tail(sessionId, id, historyMessages), id)
    } catch (error) {
      signal.throwIfAborted()
      log.warn(`session ${sessionId} could not be compacted: ${messageOf(error)}`)
      return undefined
    }
  }

  #compactionReason(
    { agent, model }: Reader,
    messages: readonly Message[],
    turns: readonly Turn[],
  ): 'overflow' | 'threshold' | undefined {
    if (model.provider === 'builtin') return undefined
    const limits = compactionLimits(this.#deps.compaction, agent)
    if (exceeds(turns, model, limits.token_threshold_ratio)) return 'overflow'
    return messages.length > limits.threshold_messages ? 'threshold' : undefined
  }

  async #compact(
    { live, agent, model, progress }: Reader,
    messages: readonly Message[],
    reason: 'overflow' | 'threshold',
  ): Promise<readonly Message[]> {
    const { compactor, log } = this.#deps
    const { sessionId, id: before, signal } = live
    live.enter({ phase: 'compacting', detail: 'older messages are being summarised' })
    try {
      const { status } = await compactor.compact({ agent, sessionId, model, before, signal, reason, turn: progress })
      return status === 'compacted' ? await this.messages(live, agent) : messages
    } catch (error) {
      signal.throwIfAborted()
      const why = messageOf(error)
      log.warn(`session ${sessionId} could not be compacted and stays as it is: ${why}`)
      return messages
    }
  }
}

/** Whether the messages fill more than this part of the model's window. */
function exceeds(turns: readonly Turn[], { model, contextWindow }: ResolvedModel, ratio: number): boolean {
  const limit = contextWindow * ratio
  if (maxTokens(turns) <= limit) return false
  const family = familyOf(model)
  return turns.reduce((sum, turn) => sum + countTurn(turn, family), 0) > limit
}

const Overrides = v.object({
  threshold_messages: v.fallback(v.optional(v.number()), undefined),
  keep_recent: v.fallback(v.optional(v.number()), undefined),
  max_summary_tokens: v.fallback(v.optional(v.number()), undefined),
  token_threshold_ratio: v.fallback(v.optional(v.number()), undefined),
})

/** What holds for an agent: the configuration with the manifest's `[compaction]` over it. */
export function compactionLimits(config: CompactionConfig, { manifest }: Agent): CompactionConfig {
  if (manifest.compaction === undefined) return config
  const own = v.parse(Overrides, manifest.compaction)
  const atLeast = (value: number | undefined, least: number, otherwise: number): number =>
    value === undefined ? otherwise : Math.max(least, value)
  return {
    ...config,
    threshold_messages: atLeast(own.threshold_messages, 2, config.threshold_messages),
    keep_recent: atLeast(own.keep_recent, 1, config.keep_recent),
    max_summary_tokens: atLeast(own.max_summary_tokens, 64, config.max_summary_tokens),
    token_threshold_ratio: atLeast(own.token_threshold_ratio, 0.05, config.token_threshold_ratio),
  }
}

/** Converted messages. They are converted once: every turn of a session needs its messages again. */
const converted = new HiddenProperty<Message, readonly Turn[]>()

/**
 * Stored messages as a provider takes them. `resumed` is a turn that continues: only its own answers keep the data that
 * their provider wants back.
 */
export function toTurns(messages: readonly Message[], resumed?: string): readonly Turn[] {
  const all: Turn[] = []
  for (const message of messages) {
    if (resumed !== undefined && message.turnId === resumed) {
      for (const turn of convert(message)) all.push(withReplay(turn, message))
      continue
    }
    for (const turn of converted.get(message, convert)) all.push(turn)
  }
  return all
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
