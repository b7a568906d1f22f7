import type { AnchorFile, AnchorState } from './anchor.ts'
import { omitUndefined } from 'svc/sdk'
import { ChainWalk, ORIGIN } from './chain.ts'
import type { Link } from './chain.ts'
import type { Verdict } from './schema.ts'
import type { AuditStore } from './store.ts'
import { BLOCK, Frontier, leafOf } from './tree/merkle.ts'
import type { Signer, Verifier } from './tree/signer.ts'
import { checkpointText, originText } from './tree/store.ts'
import type { Checkpoint, Origin, TreeStore } from './tree/store.ts'
import type { ChainTip } from './writers/store.ts'
import { WriterWalk } from './writers/walk.ts'
import type { Writers } from './writers/writers.ts'

const PAGE = 1_000
/**
 * All roots are compared. Only this many signatures are verified, which costs a hundred times as much; the newest
 * checkpoint covers the rest.
 */
const MAX_SIGNATURES = 64
const MAX_CHECKPOINTS = 10_000
/** Writers that a verdict lists. */
const MAX_WRITERS = 1_000
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

export interface Evidence {
  readonly trail: Pick<AuditStore, 'after'>
  readonly tree: Pick<TreeStore, 'blocks' | 'checkpoints' | 'origin'>
  /** Absent where only the database is at hand. */
  readonly anchor?: Pick<AnchorFile, 'read'>
  readonly signer?: Pick<Signer, 'verifier'>
  /** Where several daemons write. */
  readonly writers?: Pick<Writers, 'tips' | 'number'>
}
type Summary = Omit<Verdict, 'status' | 'valid'>

/** Reads the whole trail in pages, lets other work run between them, and reports the first problem. */
export async function walkTrail(evidence: Evidence): Promise<Verdict> {
  for (;;) {
    const verdict = await walkOnce(evidence)
    // Old entries were dropped during the walk: those it missed were not tampered with.
    if (verdict.valid || (await evidence.tree.origin())?.entry_id === verdict.origin?.entry_id) return verdict
  }
}

/**
 * The records outside the chain that vouch for it, read before the chain: entries added while it is read are newer than
 * both.
 */
interface Vouchers {
  readonly anchor: AnchorState | undefined
  readonly origin: Origin | undefined
  /** Newest first. */
  readonly checkpoints: readonly Checkpoint[]
  readonly verifier: Verifier | undefined
  readonly tips: readonly ChainTip[]
}

async function walkOnce(evidence: Evidence): Promise<Verdict> {
  const { tree, anchor, signer, writers } = evidence
  const [anchored, origin, checkpoints, verifier, tips = []] = await Promise.all([
    anchor?.read(),
    tree.origin(),
    tree.checkpoints(MAX_CHECKPOINTS),
    signer?.verifier(),
    writers?.tips(),
  ])
  const vouchers: Vouchers = { anchor: anchored, origin, checkpoints, verifier, tips }
  // What the writers have added by now is part of the walk.
  await writers?.number()
  const comparison = new ChainComparison(vouchers, await resumed(tree, origin?.entry_id ?? 0))
  for (;;) {
    const page = await evidence.trail.after(comparison.lastId, PAGE)
    for (const link of page) comparison.add(link)
    if (page.length < PAGE) break
    await pause()
  }
  const summary = comparison.summary()
  const problem =
    comparison.problem() ?? signatureProblem(vouchers, signer !== undefined) ?? anchorProblem(vouchers, summary)
  if (!problem) return { status: 'valid', valid: true, ...summary }
  return {
    status: 'invalid',
    valid: false,
    ...summary,
    ...omitUndefined({
      first_invalid_id: problem.id,
      first_invalid_writer: problem.writer,
      first_invalid_seq: problem.seq,
    }),
    reason: problem.reason,
  }
}

interface Problem {
  readonly reason: string
  /** The first invalid entry, if there is one. */
  readonly id?: number
  /** Who wrote it, and its number there, where several daemons write. */
  readonly writer?: string
  readonly seq?: number
}

/** Compares the chain, entry by entry, with the records that vouch for it. */
class ChainComparison {
  readonly #vouchers: Vouchers
  readonly #walk: ChainWalk
  readonly #frontier: Frontier | undefined
  readonly #checkpoints: ReadonlyMap<number, Checkpoint>
  readonly #writers: WriterWalk
  /** Who wrote the first entry that does not fit. */
  #culprit: Pick<Problem, 'writer' | 'seq'> | undefined
  #entries = 0
  #firstId = 0
  #reachedAnchor: boolean
  /** The newest entry that a checkpoint confirms. */
  #confirmedId = 0
  #badCheckpoint: Checkpoint | undefined

  constructor(vouchers: Vouchers, frontier: Frontier | undefined) {
    const { anchor, origin, checkpoints, tips } = vouchers
    this.#writers = new WriterWalk(tips, !origin)
    const start = origin ?? { entry_id: 0, hash: ORIGIN }
    this.#vouchers = vouchers
    this.#walk = new ChainWalk().from(start.entry_id, start.hash)
    this.#frontier = frontier
    this.#checkpoints = new Map(checkpoints.map((checkpoint) => [checkpoint.size, checkpoint]))
    this.#reachedAnchor = anchor?.kind !== 'known' || anchor.tip.count <= start.entry_id
  }

  get lastId(): number {
    return this.#walk.last.id
  }

  add(link: Link): void {
    const fits = this.#walk.add(link)
    this.#writers.add(link)
    if (!fits && link.id === this.#walk.firstInvalid && link.writer)
      this.#culprit ??= { writer: link.writer, seq: Number(link.seq) }
    if (this.#entries++ === 0) this.#firstId = link.id
    const { anchor } = this.#vouchers
    if (anchor?.kind === 'known' && link.id === anchor.tip.count && link.hash === anchor.tip.hash)
      this.#reachedAnchor = true
    if (fits && this.#walk.firstInvalid === undefined) this.#compareRoot(link)
  }

  #compareRoot(link: Link): void {
    if (!this.#frontier) return
    this.#frontier.add(leafOf(link.hash))
    const checkpoint = this.#checkpoints.get(link.id)
    if (!checkpoint || this.#badCheckpoint) return
    if (this.#frontier.root().toString('hex') === checkpoint.root) this.#confirmedId = link.id
    else this.#badCheckpoint = checkpoint
  }

  problem(): Problem | undefined {
    const problem = this.#commonProblem()
    const own = this.#writers.problem()
    if (!problem || this.#culprit) return problem ? { ...problem, ...this.#culprit } : own
    // What is missing in the common chain is missing in that of its writer.
    return { ...problem, ...omitUndefined({ writer: own?.writer, seq: own?.seq }) }
  }

  #commonProblem(): Problem | undefined {
    const { anchor, checkpoints } = this.#vouchers
    const [newest] = checkpoints
    if (this.#walk.firstInvalid !== undefined)
      return { reason: 'an entry was changed, removed or put elsewhere', id: this.#walk.firstInvalid }
    if (!this.#reachedAnchor)
      return {
        reason: 'the chain does not reach its anchor: entries were removed from its end, or all of it was rewritten',
        id: lost(anchor, this.lastId),
      }
    if (this.#badCheckpoint)
      return {
        reason: `the entries are not those that checkpoint ${this.#badCheckpoint.size} was signed for`,
        id: this.#confirmedId + 1,
      }
    if (newest && newest.size > this.lastId)
      return {
        reason: 'the chain does not reach its newest checkpoint: entries were removed from its end',
        id: this.lastId + 1,
      }
    return undefined
  }

  summary(): Summary {
    const { anchor, checkpoints, origin, verifier } = this.#vouchers
    const [newest] = checkpoints
    const isEmpty = this.#entries === 0
    return {
      chain_length: this.#entries,
      first_entry: isEmpty ? null : this.#firstId,
      last_entry: isEmpty ? null : this.lastId,
      entries: this.#entries,
      tip_hash: this.#walk.last.hash,
      anchor: anchor?.kind ?? 'unset',
      checkpoint: newest
        ? {
            size: newest.size,
            root: newest.root,
            timestamp: newest.timestamp,
            key_id: newest.key_id,
            signature: newest.signature,
          }
        : null,
      ...(verifier ? { public_key: verifier.pem } : {}),
      ...(origin ? { origin: { entry_id: origin.entry_id, hash: origin.hash } } : {}),
      ...(this.#writers.chains.size === 0 ? {} : { writers: this.#listWriters() }),
    }
  }

  #listWriters(): NonNullable<Verdict['writers']> {
    return [...this.#writers.chains]
      .slice(0, MAX_WRITERS)
      .map(([writer, { entries, seq }]) => ({ writer, entries, last_seq: seq }))
  }
}

function signatureProblem({ origin, checkpoints, verifier }: Vouchers, isSigned: boolean): Problem | undefined {
  if (!isSigned || (!origin && checkpoints.length === 0)) return undefined
  if (!verifier) return { reason: 'the signing key of the checkpoints is missing in the vault' }
  const reason = forgery(verifier, origin, checkpoints.slice(0, MAX_SIGNATURES))
  return reason === undefined ? undefined : { reason }
}

function anchorProblem({ anchor }: Vouchers, { entries }: Summary): Problem | undefined {
  if (anchor?.kind === 'forged') return { reason: 'the anchor file was changed' }
  if (anchor?.kind === 'keyless') return { reason: 'the key of the anchor is missing in the vault' }
  if (anchor?.kind === 'missing' && entries > 0) return { reason: 'the anchor file is missing' }
  return undefined
}

/** `undefined` when the stored blocks are too few to compare the roots with. */
async function resumed(tree: Evidence['tree'], dropped: number): Promise<Frontier | undefined> {
  const frontier = new Frontier()
  if (dropped === 0) return frontier
  const blocks = await tree.blocks()
  for (let position = 0; position < dropped / BLOCK; position++) {
    const root = blocks.get(position)
    if (!root) return undefined
    frontier.addBlock(root)
  }
  return frontier
}

function forgery(
  verifier: Verifier,
  origin: Origin | undefined,
  checkpoints: readonly Checkpoint[],
): string | undefined {
  if (origin && !(origin.key_id === verifier.id && verifier.holds(originText(origin), origin)))
    return 'the record of dropped entries is not signed by this daemon'
  const forged = checkpoints.find(
    (checkpoint) => !(checkpoint.key_id === verifier.id && verifier.holds(checkpointText(checkpoint), checkpoint)),
  )
  return forged && `checkpoint ${forged.size} is not signed by this daemon`
}

/** The first entry that is not there, or else the anchored one, which is not what it was. */
function lost(anchor: AnchorState | undefined, lastId: number): number {
  return anchor?.kind === 'known' ? Math.min(anchor.tip.count, lastId + 1) : lastId
}
