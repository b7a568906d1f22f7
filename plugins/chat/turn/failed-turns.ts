import { omitUndefined, Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { EntryPoint, Journal, Turn } from '../../journal/contract.ts'
import type { Message, Sessions } from '../../sessions/contract.ts'
import type { AcceptedTurn, TurnRequest } from '../contract.ts'
import { readOptions } from './live-turn.ts'
import type { SettledBy, TurnRecord } from './record.ts'

export interface FailedTurnsDeps {
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly journal: Journal
  readonly sessions: Sessions
  readonly record: TurnRecord
  /** Tools of a turn that ran, or may have, and that may have changed something. */
  readonly effectfulTools: (turnId: string) => Promise<readonly string[]>
  readonly sessionStream: {
    /** A failed or interrupted turn was retried or dropped, which is on disk. */
    settled(sessionId: string, turnId: string, how: SettledBy): void
  }
  /** Accepts the message again. The statements join its batch. */
  readonly accept: (request: TurnRequest, also: readonly Statement[]) => Promise<AcceptedTurn>
}
/** Answers a failed or interrupted turn: the statements hide it. */
type Settlement<T> = (turn: Turn, message: Message, statements: readonly Statement[]) => Promise<T>

/** Retries and drops failed turns: each once, however many requests ask for it at a time. */
export class FailedTurns {
  readonly #deps: FailedTurnsDeps
  /** Turns that are being retried or dropped. */
  readonly #settling = new Set<string>()
  constructor(deps: FailedTurnsDeps) {
    this.#deps = deps
  }

  retry(turnId: string, entryPoint: EntryPoint, id?: string): Promise<AcceptedTurn> {
    return this.#settle(turnId, 'retried', async (turn, { blocks }, statements) => {
      const texts = blocks.filter((block) => block.type === 'text')
      const request: TurnRequest = {
        ...readOptions(turn.options),
        ...omitUndefined({ id }),
        agentId: turn.agentId,
        sessionId: turn.sessionId,
        entryPoint,
        onBehalf: turn.onBehalf,
        // Its answer is read later.
        resumable: true,
        text: texts.map(({ text }) => text).join('\n\n'),
        images: blocks.filter((block) => block.type === 'image'),
        labels: texts.flatMap(({ labels = [] }) => labels),
      }
      return this.#deps.accept(request, statements)
    })
  }
  drop(turnId: string): Promise<{ readonly agentId: string; readonly sessionId: string }> {
    return this.#settle(turnId, 'dropped', async (turn, _message, statements) => {
      await this.#deps.db.batch(statements)
      return turn
    })
  }
  async #settle<T>(turnId: string, how: SettledBy, settle: Settlement<T>): Promise<T> {
    const { journal, sessions, record, effectfulTools } = this.#deps
    const alreadySettled = (): Refusal => new Refusal('conflict', `Turn ${turnId} was retried or dropped already`)
    // Nothing is awaited before the turn is taken, or two requests could both find it free.
    if (this.#settling.has(turnId)) throw alreadySettled()
    this.#settling.add(turnId)
    try {
      const turn = await journal.find(turnId)
      if (!turn)
        throw new Refusal(
          'turn_not_found',
          `No turn ${turnId}: it is older than plugins.journal.retention_days, or it never was. ` +
            'Send the message again.',
        )
      const [message] = await sessions.turn(turn.sessionId, turnId)
      if (message?.role !== 'user') throw new Refusal('turn_not_found', `The message of turn ${turnId} is deleted`)
      if (turn.state !== 'failed' && turn.state !== 'interrupted')
        throw new Refusal('conflict', `Turn ${turnId} did not fail: it is ${turn.state}`)
      if (await sessions.isHidden(turn.sessionId, turnId)) throw alreadySettled()
      // A failed turn has a note of what its tools did already.
      const done = turn.state === 'interrupted' ? await effectfulTools(turnId) : []
      const settled = await settle(turn, message, record.hidden(turn, how, done))
      this.#deps.sessionStream.settled(turn.sessionId, turnId, how)
      return settled
    } finally {
      this.#settling.delete(turnId)
    }
  }
}
