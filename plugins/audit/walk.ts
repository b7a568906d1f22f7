import type { AnchorFile, AnchorState } from './anchor.ts'
import { ChainWalk, ORIGIN } from './chain.ts'
import type { Verdict } from './schema.ts'
import type { AuditStore } from './store.ts'
import { BLOCK, Frontier, leafOf } from './tree/merkle.ts'
import type { Signer, Verifier } from './tree/signer.ts'
import { checkpointText, originText } from './tree/store.ts'
import type { Checkpoint, Origin, TreeStore } from './tree/store.ts'

const PAGE = 1_000
/** All roots are compared; of so many the signature is checked too, which costs a hundred times as much. The newest vouches for the rest. */
const SIGNATURES = 64
const MOST_CHECKPOINTS = 10_000
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
}
type Ends = Omit<Verdict, 'status' | 'valid'>

/** Reads all of the trail in pages and lets other work run between them. What it finds first is told. */
export async function walkTrail(evidence: Evidence): Promise<Verdict> {
  for (;;) {
    const verdict = await walkOnce(evidence)
    // Old entries were dropped under the walk: what it missed was not tampered with.
    if (verdict.valid || (await evidence.tree.origin())?.entry_id === verdict.origin?.entry_id) return verdict
  }
}

async function walkOnce({ trail, tree, anchor, signer }: Evidence): Promise<Verdict> {
  // Before the chain: entries that are added while it is read are newer than both.
  const [anchored, origin, signed, verifier] = await Promise.all([
    anchor?.read(),
    tree.origin(),
    tree.checkpoints(MOST_CHECKPOINTS),
    signer?.verifier(),
  ])
  const start = origin ?? { entry_id: 0, hash: ORIGIN }
  const walk = new ChainWalk().from(start.entry_id, start.hash)
  const frontier = await resumed(tree, start.entry_id)
  const expected = new Map(signed.map((checkpoint) => [checkpoint.size, checkpoint]))
  let [length, first, sound] = [0, 0, 0]
  let badRoot: Checkpoint | undefined
  let reached = anchored?.kind !== 'known' || anchored.tip.count <= start.entry_id
  for (;;) {
    const page = await trail.after(walk.last.id, PAGE)
    for (const link of page) {
      const fits = walk.add(link)
      if (length++ === 0) first = link.id
      if (anchored?.kind === 'known' && link.id === anchored.tip.count && link.hash === anchored.tip.hash)
        reached = true
      if (!frontier || !fits || walk.firstInvalid !== undefined) continue
      frontier.add(leafOf(link.hash))
      const checkpoint = expected.get(link.id)
      if (!checkpoint || badRoot) continue
      if (frontier.root().toString('hex') === checkpoint.root) sound = link.id
      else badRoot = checkpoint
    }
    if (page.length < PAGE) break
    await pause()
  }

  const newest = signed[0]
  const ends: Ends = {
    chain_length: length,
    first_entry: length === 0 ? null : first,
    last_entry: length === 0 ? null : walk.last.id,
    entries: length,
    tip_hash: walk.last.hash,
    anchor: anchored?.kind ?? 'unset',
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
  }
  const invalid = (reason: string, id?: number): Verdict => ({
    status: 'invalid',
    valid: false,
    ...ends,
    ...(id === undefined ? {} : { first_invalid_id: id }),
    reason,
  })
  if (walk.firstInvalid !== undefined)
    return invalid('an entry was changed, removed or put elsewhere', walk.firstInvalid)
  if (!reached)
    return invalid(
      'the chain does not reach its anchor: entries were removed from its end, or all of it was written anew',
      lost(anchored, walk.last.id),
    )
  if (badRoot) return invalid(`the entries are not those that checkpoint ${badRoot.size} was signed for`, sound + 1)
  if (newest && newest.size > walk.last.id)
    return invalid(
      'the chain does not reach its newest checkpoint: entries were removed from its end',
      walk.last.id + 1,
    )
  if (signer && (origin || newest)) {
    const forged = verifier
      ? forgery(verifier, origin, signed.slice(0, SIGNATURES))
      : 'the key that checkpoints are signed with is gone from the vault'
    if (forged) return invalid(forged)
  }
  if (anchored?.kind === 'forged') return invalid('the anchor file was changed')
  if (anchored?.kind === 'keyless') return invalid('the key of the anchor is gone from the vault')
  if (anchored?.kind === 'missing' && length > 0) return invalid('the anchor file is gone')
  return { status: 'valid', valid: true, ...ends }
}

/** `undefined` when the stored blocks do not reach: then there is nothing the roots could be compared with. */
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
