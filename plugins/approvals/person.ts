import { checkAuthority } from 'svc/internal'
import { nameOf, Refusal } from 'svc/sdk'
import type { Principal } from 'svc/sdk'
import type { Person } from './contract.ts'
import type { RequestRow } from './schema.ts'

export type Answerer = Principal | Person | string
/** The caller with the API key, or on a machine whose daemon has none (`nameOf`). */
export const OPERATOR = 'operator'
/** Begins what a person is called whose credential can be revoked. */
export const CREDENTIAL = 'credential '

export function toPerson(by: Answerer): Person {
  if (typeof by === 'string') return { name: by, person: by, inOwnChat: false }
  if ('person' in by) return by
  // By what a sign-in or a device is called: the same person may have several.
  const person = 'name' in by ? `${CREDENTIAL}${by.kind} ${by.name}` : OPERATOR
  return { name: nameOf(by), person, inOwnChat: false }
}

/** What an approver presented, where it can be revoked. */
export function credentialOf(
  by: Answerer,
  { remember }: { readonly remember: (principal: Principal) => string | undefined },
): string | undefined {
  return typeof by === 'string' || 'person' in by ? undefined : remember(by)
}

/** Throws `forbidden` for whoever does not hold the API key. */
export function requireKey(by: Answerer): void {
  if (typeof by === 'string' || 'person' in by)
    throw new Refusal('forbidden', 'This holds from then on: approve it over the API or on the page, with the API key')
  checkAuthority(by, 'lasting')
}

export function answered(row: RequestRow): Refusal {
  const { state, decided_at: at, decided_by: by } = row
  return new Refusal(
    'conflict',
    `This approval is ${state} already${at === null ? '' : ` since ${at}`}; it cannot be answered again`,
    { details: { status: state, decided_at: at, decided_by: by } },
  )
}
