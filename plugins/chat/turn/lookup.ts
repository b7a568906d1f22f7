import { Refusal } from 'svc/sdk'
import type { Journal, Turn } from '../../journal/contract.ts'
import type { Message, Sessions } from '../../sessions/contract.ts'
import type { UsageLedger } from '../../usage/contract.ts'
import { TurnInterrupted } from '../contract.ts'
import type { AcceptedTurn, Chat, TurnEvent, TurnRequest, TurnResult, Turns, TurnView } from '../contract.ts'
import { refusalOf, SessionLost, unknownFailure } from './failure.ts'
import type { SharedTurns } from '../owners/open.ts'
import { isOpen } from './acceptance.ts'
import type { LiveTurn } from './live-turn.ts'

export interface TurnLookupDeps {
  readonly chat: Pick<Chat, 'accept' | 'follow'> & {
    attach(turnId: string): LiveTurn | undefined
    ahead(turnId: string): readonly string[]
  }
  readonly journal: Pick<Journal, 'find' | 'turns'>
  readonly sessions: Pick<Sessions, 'turn'>
  readonly usage: () => UsageLedger | undefined
  /** Where other daemons are on the database. */
  readonly shared: () => SharedTurns | undefined
}

/** A turn without its text. */
export type ListedTurn = Turn & { readonly ahead: readonly string[] }

/** Finds turns by id: those that run in this process and those on record. */
export class TurnLookup implements Turns {
  readonly #deps: TurnLookupDeps
  constructor(deps: TurnLookupDeps) {
    this.#deps = deps
  }

  async find(turnId: string): Promise<TurnView | undefined> {
    const { view } = (await this.#read(turnId)) ?? {}
    return view
  }

  /** The turns of an agent, newest first. */
  async list(agentId: string, limit: number): Promise<readonly ListedTurn[]> {
    const turns = await this.#deps.journal.turns(agentId, limit)
    return Promise.all(turns.map(async (turn) => ({ ...turn, ahead: await this.#ahead(turn) })))
  }

  async replay(turnId: string): Promise<Pick<AcceptedTurn, 'events' | 'result'> | undefined> {
    // A turn that ends while the journal is read would be found in neither place, so the running turns come first.
    const live = this.#attach(turnId)
    if (live) return live
    let found = await this.#read(turnId)
    if (found && this.#deps.shared() && isOpen(found.turn)) {
      const followed = await this.#deps.chat.follow(turnId)
      if (followed) return followed
      found = await this.#read(turnId)
    }
    if (!found) return undefined
    const { view, model } = found
    if (view.failure) throw refusalOf(view.failure, view.id)
    if (view.state === 'interrupted') {
      throw new Refusal(
        TurnInterrupted,
        'The service stopped before this was answered, and it is not answered any more. What was said is in the ' +
          `session: POST /api/turns/${view.id}/retry has it answered as a new turn, and so does sending it again ` +
          'under another Idempotency-Key.',
        { details: { turn_id: view.id } },
      )
    }
    if (view.state !== 'done' && view.state !== 'cancelled')
      throw new Refusal('service_unavailable', 'This is being worked on', {
        retryAfterSecs: 1,
        details: { turn_id: view.id },
      })
    const result: TurnResult = {
      turnId: view.id,
      sessionId: view.sessionId,
      text: view.text,
      usage: view.usage ?? { input: 0, output: 0 },
      iterations: view.iterations,
      costUsd: view.costUsd,
      provider: model?.provider ?? '',
      model: model?.model ?? '',
      stop: view.state,
    }
    return { events: () => replayEvents(result), result: () => Promise.resolve(result) }
  }

  async ensure(request: TurnRequest & { readonly id: string }): Promise<Pick<AcceptedTurn, 'events' | 'result'>> {
    const turn = (await this.replay(request.id)) ?? (await this.#deps.chat.accept(request))
    return { events: () => turn.events(), result: () => this.#resultOf(request.id, turn) }
  }
  /** Wherever it ends: a turn that was lost to another daemon is followed there. */
  async #resultOf(turnId: string, turn: Pick<AcceptedTurn, 'result'>): Promise<TurnResult> {
    try {
      return await turn.result()
    } catch (error) {
      if (!(error instanceof SessionLost) && !(await this.#endedElsewhere(turnId))) throw error
      const again = await this.replay(turnId)
      if (!again) throw error
      return again.result()
    }
  }
  /** While the daemon stops, another one may have gone on with the turn to its end. */
  async #endedElsewhere(turnId: string): Promise<boolean> {
    if (!this.#deps.shared()) return false
    const turn = await this.#deps.journal.find(turnId)
    return turn?.state === 'done'
  }

  /** A turn that waits or runs here, and was not lost to another daemon. */
  #attach(turnId: string): LiveTurn | undefined {
    const live = this.#deps.chat.attach(turnId)
    return live?.stopped?.by === 'lost' ? undefined : live
  }

  /** The turns that are answered before this one. */
  async #ahead(turn: Turn): Promise<readonly string[]> {
    const owners = this.#deps.shared()?.owners
    if (!owners?.isElsewhere(turn)) return this.#deps.chat.ahead(turn.id)
    const ids = (await owners.inOrder(turn.sessionId)).map(({ id }) => id)
    return ids.slice(0, Math.max(0, ids.indexOf(turn.id)))
  }

  async #read(turnId: string) {
    const { journal, sessions, usage } = this.#deps
    const live = this.#attach(turnId)
    const turn = await journal.find(turnId)
    if (!turn) return undefined
    const [messages, use] = await Promise.all([sessions.turn(turn.sessionId, turnId), usage()?.turn(turn)])
    const answers = messages.filter(({ role }) => role === 'assistant')
    const view: TurnView = {
      id: turn.id,
      agentId: turn.agentId,
      sessionId: turn.sessionId,
      entryPoint: turn.entryPoint,
      state: turn.state,
      createdAt: turn.createdAt,
      error: turn.error ?? null,
      failure: turn.state === 'failed' ? (turn.failure ?? unknownFailure(turn.error)) : null,
      phase: live?.phase ?? null,
      ahead: await this.#ahead(turn),
      text: live
        ? await textSoFar(live)
        : answers
            .map(textOf)
            .filter((text) => text !== '')
            .join('\n\n'),
      iterations: use?.calls ?? answers.length,
      usage: use ? { input: use.inputTokens, output: use.outputTokens } : null,
      costUsd: use && use.unpriced === 0 ? use.costUsd : null,
      provider: use?.provider ?? null,
      model: use?.model ?? null,
    }
    return { turn, view, model: use }
  }
}

async function* replayEvents(result: TurnResult): AsyncGenerator<TurnEvent> {
  if (result.text !== '') yield { type: 'text', delta: result.text }
  yield { type: 'end', result }
}

function textOf({ blocks }: Message): string {
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n')
}

/** Returns the text that is there already: the first step that would have to be awaited ends it. */
async function textSoFar(turn: AcceptedTurn): Promise<string> {
  const reader = turn.events()[Symbol.asyncIterator]()
  let text = ''
  try {
    for (;;) {
      const later = new Promise<undefined>((resolve) => {
        setImmediate(resolve, undefined)
      })
      const step = await Promise.race([reader.next(), later])
      if (!step || step.done) return text
      if (step.value.type === 'text') text += step.value.delta
    }
  } catch {
    // The turn failed just now: the record says why, and the text so far stays.
    return text
  } finally {
    await reader.return?.()
  }
}
