import { randomUUID } from 'node:crypto'
import { newId } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Changes, Logger, Statement } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Journal } from '../../journal/contract.ts'
import type { Session } from '../contract.ts'
import type { SessionService } from '../service.ts'
import type { BranchStore, MessageCopy, PlaceRow } from './store.ts'

const MAX_TITLE = 60
/** What one transaction copies: others have their turn between two. */
const SLICE_MESSAGES = 200
const SLICE_CHARS = 500_000
/** No copying takes so long: it was cut off. */
const ABANDONED_MS = 3_600_000

export interface BranchDeps {
  readonly store: BranchStore
  readonly sessions: SessionService
  readonly agents: Agents
  readonly audit: Audit
  readonly journal: () => Journal | undefined
  /** That are copied, results of tools included. */
  readonly maxMessages: number
  readonly commit: (statements: readonly Statement[]) => Promise<readonly Changes[]>
  readonly log: Pick<Logger, 'error'>
  readonly now: () => number
}
export interface BranchOptions {
  /** Id or number of the last message that is copied; by default the last one that is complete. */
  readonly message?: string | number | undefined
  readonly label?: string | undefined
  readonly id?: string | undefined
}

/**
 * Copies a conversation up to one message into a new session of the same agent, and makes that the active one. Failed
 * turns stay where they can be retried. With an id that there is already, that session stays as it is.
 */
export async function branchSession(deps: BranchDeps, source: Session, options: BranchOptions): Promise<Session> {
  const { store, sessions, agents, audit, commit } = deps
  const id = options.id ?? randomUUID()
  const made = await sessions.find(id)
  if (made) return made
  await agents.require(source.agentId)
  const shown = await store.places(source.id, deps.maxMessages + 1)
  const turns = (await deps.journal()?.open({ sessionId: source.id })) ?? []
  const open = new Set(turns.map((turn) => turn.id))
  const end = await endOf(deps, shown, open, options.message)
  const copies = copiesOf(shown.slice(0, end).filter(({ turn_state: state }) => state === null))
  const [last] = copies.slice(-1)
  if (!last) throw new Refusal('conflict', 'There is no answered message to branch from yet: send one first')
  const label = options.label ?? (await freeLabel(sessions, source))
  if (await sessions.findByLabel(source.agentId, label))
    throw new Refusal('conflict', `Another session of this agent is labelled "${label}": choose another label`)
  await removeAbandoned(deps)
  await commit(store.begin(id, new Date(deps.now()).toISOString()))
  try {
    await copyInSlices(deps, id, copies)
    await commit([
      ...sessions.ensure(id, source.agentId, { label }),
      store.count(id, copies.length),
      ...(await summaryOf(store, source.id, id, copies)),
      store.end(id),
      audit.entry({
        event: 'session_changed',
        agentId: source.agentId,
        details: `session ${id} branched from ${source.id} at message ${last.from.id}, ${id} is active`,
      }),
    ])
  } catch (error) {
    await commit(store.discard(id)).catch((failure: unknown) =>
      deps.log.error('the copies of a branch that was not made are removed later', failure),
    )
    throw error
  }
  await agents.activate(source.agentId, id)
  const branch = await sessions.find(id)
  if (!branch) throw new Refusal('session_not_found', 'The new session was deleted meanwhile')
  return branch
}

/** What was copied when a daemon ended belongs to no conversation. */
export async function removeAbandoned({
  store,
  commit,
  now,
}: Pick<BranchDeps, 'store' | 'commit' | 'now'>): Promise<void> {
  const abandoned = await store.abandoned(new Date(now() - ABANDONED_MS).toISOString())
  for (const id of abandoned) await commit(store.discard(id))
}

/** Throws `conflict` when a message went meanwhile. Until there is a session with this id nobody sees its messages. */
async function copyInSlices({ store, commit }: BranchDeps, id: string, copies: readonly MessageCopy[]): Promise<void> {
  for (const slice of slicesOf(copies)) {
    const copied = await commit(slice.map((copy) => store.copy(id, copy)))
    if (copied.some(({ changes }) => changes === 0))
      throw new Refusal('conflict', 'Messages of this conversation were deleted meanwhile: branch it again')
  }
}

function* slicesOf(copies: readonly MessageCopy[]): Generator<readonly MessageCopy[]> {
  let slice: MessageCopy[] = []
  let chars = 0
  for (const copy of copies) {
    if (slice.length === SLICE_MESSAGES || (slice.length > 0 && chars + copy.from.chars > SLICE_CHARS)) {
      yield slice
      slice = []
      chars = 0
    }
    slice.push(copy)
    chars += copy.from.chars
  }
  if (slice.length > 0) yield slice
}

/** How many of the messages are copied, with the results of the last one's tools. */
async function endOf(
  { store, maxMessages }: BranchDeps,
  shown: readonly PlaceRow[],
  open: ReadonlySet<string>,
  wanted: string | number | undefined,
): Promise<number> {
  // Then the rest was not read.
  const isTooLong = shown.length > maxMessages
  if (isTooLong && (wanted === undefined || !findMessage(shown, wanted))) throw tooLong(maxMessages)
  const at =
    wanted === undefined
      ? shown.findLastIndex(({ turn_id: turn, turn_state: state }) => !open.has(turn) && state === null)
      : requireMessage(shown, wanted)
  const chosen = shown[at]
  if (!chosen) return 0
  if (open.has(chosen.turn_id))
    throw new Refusal(
      'conflict',
      'This message is still being answered: wait for the answer, stop it, or branch from an earlier message',
    )
  if (chosen.turn_state !== null)
    throw new Refusal('conflict', 'This message failed: retry it first, or branch from an earlier message')
  let end = at + 1
  while (shown[end]?.role === 'tool') end++
  if (end > maxMessages) throw tooLong(maxMessages)
  await checkResults(store, shown.slice(at, end))
  return end
}

const tooLong = (maxMessages: number): Refusal =>
  new Refusal(
    'conflict',
    `A branch copies at most ${maxMessages} messages, results of tools included: branch from an earlier message, or ` +
      'raise branch_max_messages under [plugins.sessions]',
  )

const visibleOf = (shown: readonly PlaceRow[]): readonly PlaceRow[] => shown.filter(({ role }) => role !== 'tool')

function findMessage(shown: readonly PlaceRow[], wanted: string | number): PlaceRow | undefined {
  const visible = visibleOf(shown)
  return typeof wanted === 'number' ? visible[wanted - 1] : visible.find(({ id }) => id === wanted)
}

function requireMessage(shown: readonly PlaceRow[], wanted: string | number): number {
  const found = findMessage(shown, wanted)
  if (found) return shown.indexOf(found)
  throw new Refusal(
    'message_not_found',
    typeof wanted === 'number'
      ? `No message ${wanted}: this conversation has ${visibleOf(shown).length}, counted from 1`
      : `No message ${wanted} in this conversation`,
  )
}

/** A model refuses a history that ends with a call without its result. */
async function checkResults(store: BranchStore, places: readonly PlaceRow[]): Promise<void> {
  const rows = await Promise.all(places.map(({ id }) => store.message(id)))
  const blocks = rows.flatMap((row) => row?.blocks ?? [])
  const answered = new Set(blocks.flatMap((block) => (block.type === 'result' ? [block.callId] : [])))
  const call = blocks.find((block) => block.type === 'call' && !answered.has(block.id))
  if (call?.type === 'call')
    throw new Refusal(
      'conflict',
      `The message calls the tool ${call.tool} and has no result of it: branch from an earlier message`,
    )
}

/** Messages are numbered anew, and each turn gets an id of its own: one turn belongs to one session. */
function copiesOf(places: readonly PlaceRow[]): readonly MessageCopy[] {
  const turns = new Map<string, { readonly turnId: string; readonly turnSeq: number }>()
  return places.map((from, index) => {
    const turn = turns.get(from.turn_id) ?? { turnId: newId(), turnSeq: index + 1 }
    turns.set(from.turn_id, turn)
    return { ...turn, from, id: newId(), seq: index + 1 }
  })
}

async function summaryOf(
  store: BranchStore,
  sourceId: string,
  id: string,
  copies: readonly MessageCopy[],
): Promise<readonly Statement[]> {
  const end = copies.at(-1)
  const summary = end && (await store.summary(sourceId, end.from))
  const first = copies.find(({ from }) => from.id === summary?.first_message_id)
  const last = copies.find(({ from }) => from.id === summary?.last_message_id)
  return summary && first && last ? [store.copySummary(id, summary, { id: newId(), first, last })] : []
}

/** “Boats (branch)”, “Boats (branch 2)”: a label finds one session. */
async function freeLabel(sessions: SessionService, source: Session): Promise<string> {
  const taken = new Set((await sessions.list(source.agentId)).map(({ label }) => label))
  const base = source.title.replace(/ \(branch(?: \d+)?\)$/, '') || 'Conversation'
  const title =
    base.length > MAX_TITLE
      ? `${base
          .slice(0, MAX_TITLE - 1)
          .toWellFormed()
          .trimEnd()}…`
      : base
  for (let number = 1; ; number++) {
    const label = number === 1 ? `${title} (branch)` : `${title} (branch ${number})`
    if (!taken.has(label)) return label
  }
}
