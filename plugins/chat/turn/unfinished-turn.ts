import { setTimeout as delay } from 'node:timers/promises'
import { untilAnswered } from 'svc/internal'
import type { ServerAway } from 'svc/internal'
import { estimateUsage } from 'svc/providers'
import { Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Journal } from '../../journal/contract.ts'
import { isOpen } from './acceptance.ts'
import { failureOf, isTakenOver } from './failure.ts'
import type { LiveTurn } from './live-turn.ts'
import type { TurnProgress } from './progress.ts'
import { effectKey } from './record.ts'
import type { TurnRecord } from './record.ts'
import { INTERRUPTED } from './resume.ts'

export interface UnfinishedTurn {
  readonly live: LiveTurn
  readonly progress: TurnProgress
  /** Starts the next turn of the session. */
  readonly startNext: () => readonly Statement[]
}
interface UnfinishedTurnDeps {
  readonly record: TurnRecord
  /** Settles when durable. */
  readonly commit: (statements: readonly Statement[]) => Promise<void>
}
interface CommitAgainDeps {
  readonly record: TurnRecord
  readonly journal: Pick<Journal, 'find'>
  /** Aborts when the plugin begins to unload. */
  readonly leaving: AbortSignal
  readonly log: Pick<Logger, 'warn'>
}
/** Between two attempts to write the end of a turn. */
const END_RETRY_MS = 1_000
/** A turn that is lost is not recorded here. */
const STATE_AFTER_STOP = { cancel: 'cancelled', unload: 'interrupted', lost: 'interrupted' } as const

/** Records a turn that was stopped or failed: its text and its effects are kept and marked as incomplete. */
export async function recordUnfinishedTurn(
  { record, commit }: UnfinishedTurnDeps,
  { live, progress, startNext }: UnfinishedTurn,
  error: unknown,
  reason: string,
): Promise<void> {
  const { stopped, forgotten } = live
  const state = stopped ? STATE_AFTER_STOP[stopped.by] : 'failed'
  const failure = stopped ? undefined : failureOf(error)
  const paid = chargeCutAnswer(record, live, progress)
  if (state === 'interrupted' && (live.resumable || live.waiting)) {
    await commit([...receiptsOf(record, live, progress), ...paid, ...record.traces(progress), record.released(live.id)])
    return
  }
  const messages = forgotten
    ? []
    : [...openCallResults(record, live, progress), ...partialAnswer(record, live, progress, state)]
  await commit([
    ...messages,
    ...(failure && !forgotten ? record.failed(live, failure, progress.effects) : []),
    ...paid,
    ...record.ended(live, state, reason, progress, failure),
    ...startNext(),
  ])
}

/**
 * On a database that other daemons share, nobody looks for an open turn of a daemon that lives. So its end is written
 * again until the server answers. `failure`: of the first attempt.
 */
export async function commitAgain(
  { record, journal, leaving, log }: CommitAgainDeps,
  live: LiveTurn,
  statements: readonly Statement[],
  failure: unknown,
): Promise<void> {
  let error = failure
  // What failed may have been written after all.
  const isWritten = async (): Promise<boolean> => {
    const known = await journal.find(live.id)
    return known !== undefined && !isOpen(known)
  }
  for (let attempt = 1; ; attempt++) {
    if (live.fence.length === 0 || leaving.aborted || isTakenOver(error)) throw error
    if (!isPassing(error)) {
      if (attempt > 1 && (await isWritten())) return
      throw error
    }
    if (attempt === 1) log.warn(`the end of turn ${live.id} cannot be written yet; that is tried again`, error)
    await delay(END_RETRY_MS, undefined, { signal: leaving }).catch(() => undefined)
    try {
      if (await isWritten()) return
      await record.commit(live, statements)
      return
    } catch (again) {
      error = again
    }
  }
}
/** A failure of the database that another attempt may not meet. */
const isPassing = (error: unknown): boolean => error instanceof Refusal && error.code === 'service_unavailable'

/**
 * Settles when the database answers again and has what is known of the turn, so that it can go on from its rows. Throws
 * when the turn is stopped meanwhile, or another daemon has taken its session over.
 */
export async function awaitDatabase(
  {
    record,
    journal,
    leaving,
  }: Pick<UnfinishedTurnDeps, 'record'> & {
    readonly journal: Pick<Journal, 'effects'>
    readonly leaving: AbortSignal
  },
  { live, progress }: Pick<UnfinishedTurn, 'live' | 'progress'>,
  { mayBeWritten }: ServerAway,
): Promise<void> {
  live.enter({ phase: 'retrying', detail: 'the database does not answer; this goes on when it does' })
  const { signal } = live
  const state = live.waiting ? record.waiting(live.id) : record.running(live.id)
  const statements = [state, ...receiptsOf(record, live, progress), ...chargeCutAnswer(record, live, progress)]
  const until = AbortSignal.any([signal, leaving])
  try {
    await untilAnswered(() => record.commit(live, statements), until)
    progress.unpaid = []
    if (mayBeWritten) await untilAnswered(() => findStep(journal, { live, progress }), until)
    progress.unrecordedCalls = []
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
  progress.goBack()
  live.resumed = true
}

/** Whether the calls of the last step are recorded after all. */
async function findStep(
  journal: Pick<Journal, 'effects'>,
  { live, progress }: Pick<UnfinishedTurn, 'live' | 'progress'>,
): Promise<void> {
  const calls = progress.unrecordedCalls
  if (calls.length === 0) return
  const keys = new Set(calls.map(({ id }) => effectKey(live.id, id)))
  if ((await journal.effects(live.id)).some(({ key }) => keys.has(key))) progress.startStep(calls)
}

function receiptsOf(record: TurnRecord, live: LiveTurn, { calls, outcomes }: TurnProgress): readonly Statement[] {
  return calls.flatMap((call) => {
    const outcome = outcomes.get(call.id)
    return outcome ? [record.receipt(live, call, outcome)] : []
  })
}

/** What the models cost that is not recorded, and the answer that was cut, as far as it came. */
function chargeCutAnswer(record: TurnRecord, live: LiveTurn, progress: TurnProgress): readonly Statement[] {
  const { request, written, model } = progress
  const usage = request && written > 0 ? estimateUsage(request, written) : undefined
  progress.written = 0
  if (usage) progress.addUsage(usage)
  progress.unpaid = [
    ...progress.unpaid,
    ...(usage && model ? record.usage(live, model, usage) : []),
    ...progress.releaseReservation(),
  ]
  return progress.unpaid
}

function partialAnswer(
  record: TurnRecord,
  live: LiveTurn,
  progress: TurnProgress,
  state: 'cancelled' | 'interrupted' | 'failed',
): readonly Statement[] {
  const text = progress.unrecordedText.trimStart()
  const reasoning = progress.takeReasoning()
  if (state === 'failed') return text === '' ? [] : record.answer(live, { text, reasoning }, progress.labels, 'cut')
  const shown = text === '' && state === 'interrupted' ? INTERRUPTED : text
  return record.answer(live, { text: shown, reasoning }, progress.labels, state)
}

/** Every recorded call gets a result, or the transcript could not be sent to a model again. */
function openCallResults(
  record: TurnRecord,
  live: LiveTurn,
  { calls, outcomes, startedCalls }: TurnProgress,
): readonly Statement[] {
  if (calls.length === 0) return []
  const results = calls.map((call) => {
    const text = startedCalls.has(call.id)
      ? 'stopped: it is not known how far this got'
      : 'not run: the turn was stopped before'
    return { call, outcome: outcomes.get(call.id) ?? { text, failed: true } }
  })
  return [
    ...record.toolResults(live, results),
    ...results.map(({ call, outcome }) => record.receipt(live, call, outcome)),
  ]
}
