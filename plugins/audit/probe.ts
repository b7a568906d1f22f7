import type { Finding, ProbeCase } from '../security/contract.ts'
import type { AnchorFile, AnchorState } from './anchor.ts'
import { bodyOf, ChainWalk, hashOf, ORIGIN } from './chain.ts'
import type { Link } from './chain.ts'
import { accept } from './service.ts'
import type { AuditTrail } from './service.ts'
import { walkTrail } from './walk.ts'

/** Of the real trail, the newest entries that are hashed again. */
const NEWEST = 256

/**
 * A chain of four entries, whole and broken in four ways, through the walk that verifies the real one; then the end of
 * the real one.
 */
export async function probe(trail: AuditTrail, anchor: Pick<AnchorFile, 'read'>): Promise<Finding> {
  const chain = scratch()
  const tip = chain.at(-1)
  const anchored: AnchorState = { kind: 'known', tip: { count: 4, hash: tip?.hash ?? '' } }
  const [one, two, three, four] = chain
  if (!one || !two || !three || !four) throw new Error('the scratch chain is too short')
  const cases: ProbeCase[] = [
    { name: 'a whole chain is valid', passed: await isValid(chain, anchored) },
    {
      name: 'a changed letter is found',
      passed: !(await isValid([one, { ...two, details: `${two.details.slice(0, -1)}?` }, three, four], anchored)),
    },
    {
      name: 'a letter moved from one field into the next is found',
      passed: !(await isValid(
        [one, { ...two, agent_id: `${two.agent_id}d`, details: two.details.slice(1) }, three, four],
        anchored,
      )),
    },
    {
      name: 'two entries in the other order are found',
      passed: !(await isValid([one, { ...three, id: 2 }, { ...two, id: 3 }, four], anchored)),
    },
    { name: 'a missing entry is found', passed: !(await isValid([one, three, four], anchored)) },
    { name: 'a missing end is found', passed: !(await isValid([one, two, three], anchored)) },
    { name: 'a chain written anew is found', passed: !(await isValid(scratch('other'), anchored)) },
    { name: 'a forged anchor is found', passed: !(await isValid(chain, { kind: 'forged' })) },
  ]

  // The anchor first: entries added in between are newer.
  const state = await anchor.read()
  const newest = await trail.store.tip()
  const from = Math.max(0, (newest?.id ?? 0) - NEWEST)
  const links = await trail.store.after(from, NEWEST)
  const [first, ...rest] = links
  const walk = new ChainWalk()
  if (first) walk.from(first.id - 1, first.prev_hash)
  cases.push({
    name: `the newest ${links.length} entries link up`,
    passed: (first === undefined ? [] : [first, ...rest]).every((link) => walk.add(link)),
  })
  const reachesAnchor = await reaches(trail, state)
  cases.push({ name: `the trail reaches its anchor${reachesAnchor ? '' : accept()}`, passed: reachesAnchor })
  return { cases, evidence: `${newest?.id ?? 0} entries; anchor ${state.kind}` }
}

/** Without an anchor there is nothing to compare with; entries dropped for their age precede the oldest one. */
async function reaches({ store, checkpoints }: AuditTrail, state: AnchorState): Promise<boolean> {
  if (state.kind !== 'known') return state.kind === 'unset'
  const { count, hash } = state.tip
  if (count === 0 || (await store.find(count))?.hash === hash) return true
  return count <= ((await checkpoints.store.origin())?.entry_id ?? 0)
}

function isValid(links: readonly Link[], state: AnchorState): Promise<boolean> {
  return walkTrail({
    trail: { after: (id, limit) => Promise.resolve(links.filter((link) => link.id > id).slice(0, limit)) },
    tree: {
      blocks: () => Promise.resolve(new Map()),
      checkpoints: () => Promise.resolve([]),
      origin: () => Promise.resolve(undefined),
    },
    anchor: { read: () => Promise.resolve(state) },
  }).then(({ status }) => status === 'valid')
}

function scratch(what = 'probe'): readonly Link[] {
  let before = ORIGIN
  return [1, 2, 3, 4].map((id) => {
    const fields = {
      timestamp: '2024-01-01T00:00:00.000Z',
      event_type: 'capability_check',
      agent_id: 'scratch',
      details: `d${what} ${id}`,
    }
    const link: Link = { id, ...fields, prev_hash: before, hash: hashOf(id, before, bodyOf(fields)) }
    before = link.hash
    return link
  })
}
