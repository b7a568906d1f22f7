import { toIso } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Scope } from './contract.ts'
import { answered, CREDENTIAL, credentialOf, toPerson } from './person.ts'
import type { Answerer } from './person.ts'
import type { Person } from './contract.ts'
import type { RequestRow } from './schema.ts'
import type { ApprovalServiceDeps } from './service.ts'

type TwoPeopleDeps = Pick<ApprovalServiceDeps, 'store' | 'audit' | 'clock' | 'holds' | 'remember'>

/**
 * Approves a pending request that needs two people, and returns it as it is then: the first approval leaves it pending.
 * Throws `forbidden` for the same person, and for a second answer from the chat that asks.
 */
export async function approveAsOneOfTwo(
  deps: TwoPeopleDeps,
  row: RequestRow,
  by: Answerer,
  scope: Scope,
): Promise<RequestRow> {
  const { store, audit, clock } = deps
  if (scope === 'session') throw new Refusal('forbidden', 'Two people have to approve this, each time')
  const person = toPerson(by)
  const credential = credentialOf(by, deps)
  const at = toIso(clock.now())
  const isFirst = row.first_person === null || !firstHolds(deps, row)
  if (!isFirst) refuseSamePerson(row, person)
  const statements = isFirst
    ? [await store.approveFirst(row, person, credential, at)]
    : await store.approveSecond(row, person.name, credential, at)
  const what = isFirst ? 'first, a second person has to as well' : `second, after ${row.first_by}`
  const details = `approval ${row.id} approved by ${person.name} (${what}), action ${row.action_hash}: ${row.summary}`
  try {
    await store.commit(...statements, audit.entry({ event: 'capability_check', agentId: row.agent_id, details }))
  } catch (error) {
    const now = await store.find(row.id)
    if (now === undefined || (now.state === 'pending' && now.first_at === row.first_at)) throw error
    if (now.state !== 'pending') throw answered(now)
    throw new Refusal('conflict', 'Somebody else approved this at the same moment: look at it again', { cause: error })
  }
  if (!isFirst) return { ...row, state: 'approved', decided_at: at, decided_by: person.name, scope: 'once' }
  return { ...row, first_by: person.name, first_person: person.person, first_at: at }
}

/** A first approval counts as long as its credential does; it has to be given again when that is not known. */
function firstHolds({ holds }: TwoPeopleDeps, { first_credential: first, first_person: person }: RequestRow): boolean {
  if (person?.startsWith(CREDENTIAL) !== true) return true
  return first !== null && holds(first)
}

/** Throws unless this is another person, who does not answer in the same chat as the first when that is the asker's. */
function refuseSamePerson(row: RequestRow, { person, name, inOwnChat }: Person): void {
  if (row.first_person === person || row.first_by === name)
    throw new Refusal('forbidden', 'You have approved this already: another person has to approve it too')
  if (inOwnChat && row.first_in_own_chat === 1)
    throw new Refusal('forbidden', 'One of the two people has to approve this outside of the chat that asks for it')
}
