import { matchesWildcard, orAborted } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { ChannelMessages, ChannelTarget } from '../../../channels/contract.ts'
import type { TurnResult, Turns } from '../../../chat/contract.ts'
import type { AnswerRow, AnswerStore } from './store.ts'

const BATCH_SIZE = 100
const GIVE_UP_MS = 86_400_000

export interface AnswerDeliveryDeps {
  readonly store: AnswerStore
  readonly channels: () => ChannelMessages | undefined
  readonly turns: Pick<Turns, 'find' | 'replay'>
  /** What the operator permits, as `channel:recipient`. */
  readonly permitted: readonly string[]
  readonly log: Pick<Logger, 'warn'>
  /** Aborts when the plugin begins to unload: a turn may wait for a person for hours. */
  readonly leaving: AbortSignal
  readonly nowMs?: () => number
}
/** The parts of a request that say where its answer goes. */
export interface DeliveryRequest {
  readonly deliver: boolean
  readonly channel?: string | undefined
  readonly recipient?: string | undefined
  readonly account_id?: string | undefined
  readonly thread_id?: string | undefined
}
export interface DeliveryView {
  readonly status: AnswerRow['state']
  readonly channel: string
  readonly recipient: string
  readonly error?: string
}

/**
 * Delivers answers to chats. Where an answer goes is on disk before its turn begins, and the message has the id of the
 * turn: it is sent once, whenever the daemon stops.
 */
export class AnswerDelivery {
  readonly #deps: AnswerDeliveryDeps
  readonly #nowMs: () => number
  readonly #followed = new Map<string, Promise<void>>()
  constructor(deps: AnswerDeliveryDeps) {
    this.#deps = deps
    this.#nowMs = deps.nowMs ?? Date.now
  }

  /** Where an answer is to go; `undefined` when it is not to be delivered. Throws for what could not be. */
  async check(request: DeliveryRequest, agentId: string): Promise<ChannelTarget | undefined> {
    if (!request.deliver) return undefined
    const { channel, recipient, account_id: account, thread_id: thread } = request
    if (channel === undefined || recipient === undefined) {
      const missing = channel === undefined ? 'channel' : 'recipient'
      const example = channel === undefined ? 'such as "telegram"' : 'the id of the chat the answer goes to'
      throw new Refusal('invalid_request', `${missing}: deliver needs it, ${example}`)
    }
    const channels = this.#deps.channels()
    if (!channels) throw new Refusal('invalid_request', 'deliver: the plugin "channels" is not loaded')
    if (!this.#deps.permitted.some((pattern) => matchesWildcard(pattern, `${channel}:${recipient}`)))
      throw new Refusal(
        'forbidden',
        `recipient: ${channel}:${recipient} is not in deliver_to of [webhook_triggers] in config.toml`,
      )
    const target = { channel, to: recipient, agentId, ...omitUndefined({ account, thread }) }
    await channels.check(target)
    return target
  }

  /** Puts the target of a turn that is about to begin on disk. Returns what `forget` is given. */
  async remember(id: string, { channel, account, to, thread, agentId = '' }: ChannelTarget): Promise<string> {
    const createdAt = new Date(this.#nowMs()).toISOString()
    await this.#deps.store.insert({
      id,
      agent_id: agentId,
      channel,
      account: account ?? null,
      recipient: to,
      thread: thread ?? null,
      state: 'pending',
      error: null,
      created_at: createdAt,
    })
    return createdAt
  }
  /** The turn was not accepted. The same request may have come to another daemon meanwhile, which remembered it too. */
  async forget(id: string, remembered: string): Promise<void> {
    await this.#deps.store.remove(id, remembered)
  }

  /** Delivers the answer of a turn when it is there. Settles then; nothing happens for a turn without a target. */
  follow(id: string): Promise<void> {
    const followed = this.#followed.get(id) ?? this.#deliver(id).finally(() => this.#followed.delete(id))
    this.#followed.set(id, followed)
    return followed
  }
  /** The turns whose answers wait, such as those of an earlier process. */
  async waiting(): Promise<readonly string[]> {
    return (await this.#deps.store.waiting(BATCH_SIZE)).map(({ id }) => id)
  }
  async deleteOld(before: string): Promise<void> {
    await this.#deps.store.deleteOld(before)
  }
  async view(id: string): Promise<DeliveryView | undefined> {
    const row = await this.#deps.store.find(id)
    if (!row) return undefined
    const { state: status, channel, recipient, error } = row
    return { status, channel, recipient, ...(error !== null && { error }) }
  }

  async #deliver(id: string): Promise<void> {
    const { store, turns } = this.#deps
    const row = await store.find(id)
    const turn = row?.state === 'pending' ? await turns.replay(id) : undefined
    if (!row || !turn) return
    const result = await this.#resultOf(id, turn.result())
    if (result === undefined) return
    if (result === 'failed') return store.ended(id, 'failed', 'the turn failed')
    if (result.text.trim() === '' || result.stop === 'cancelled') return store.ended(id, 'skipped')
    await this.#send(row, result.text)
  }
  /** `undefined` when it comes later, perhaps in another process. */
  async #resultOf(id: string, work: Promise<TurnResult>): Promise<TurnResult | 'failed' | undefined> {
    const { leaving, turns } = this.#deps
    try {
      return await orAborted(work, leaving)
    } catch {
      const state = (await turns.find(id))?.state ?? ''
      // The result of one that is done could not be read.
      const comesLater = ['queued', 'running', 'waiting', 'done'].includes(state)
      return leaving.aborted || comesLater ? undefined : 'failed'
    }
  }
  async #send(row: AnswerRow, text: string): Promise<void> {
    const { store, channels, log } = this.#deps
    const { id, channel, account, recipient: to, thread, agent_id: agentId } = row
    try {
      const service = channels()
      if (!service) throw new Refusal('service_unavailable', 'the plugin "channels" is not loaded')
      await service.send({
        id: `hook ${id}`,
        channel,
        to,
        text,
        agentId,
        turnId: id,
        ...omitUndefined({ account: account ?? undefined, thread: thread ?? undefined }),
      })
      await store.ended(id, 'queued')
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // The channel may have been switched off meanwhile: it is tried again until then.
      if (this.#nowMs() - Date.parse(row.created_at) < GIVE_UP_MS) return
      await store.ended(id, 'failed', error.message)
      log.warn('an answer could not be delivered', { turn: id, channel, reason: error.message })
    }
  }
}
