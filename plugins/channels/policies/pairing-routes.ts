import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { defineRoute, line } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AccountId, DEFAULT_ACCOUNT } from '../accounts/settings.ts'
import type { Pairing } from './pairing.ts'
import { roles } from './store.ts'
import type { Paired } from './store.ts'

export interface PairingRoutesDeps {
  readonly pairing: Pairing
  /** The name under which a channel is known. Throws `channel_not_found`. */
  readonly channelName: (given: string) => string
}

const Params = v.object({ name: line(64) })
const Person = v.object({
  id: v.string(),
  account_id: v.string(),
  sender_id: v.string(),
  name: v.string(),
  role: v.picklist(roles),
  paired_at: v.string(),
})
const person = {
  id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
  account_id: 'default',
  sender_id: '4711',
  name: 'Ada',
  role: 'user' as const,
  paired_at: '2026-01-01T12:00:00.000Z',
}

/** Codes that let people talk to an account, and the people who used one. */
export function pairingRoutes(deps: PairingRoutesDeps): readonly AnyRoute[] {
  return [requestRoute(deps), listRoute(deps), removeRoute(deps)]
}

function requestRoute({ pairing, channelName }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/pairing',
    summary: 'Get a code that lets a person talk to the bot',
    description:
      'The person sends it to the bot in a direct chat. It works once, and only for a few minutes. ' +
      'Operators may also approve what agents do and change the model.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: Params,
    body: v.object({ account_id: orAbsent(AccountId), role: v.optional(v.picklist(roles), 'user') }),
    returns: v.object({ pairing_code: v.string(), expires_at: v.string(), role: v.picklist(roles) }),
    status: 201,
    errors: ['channel_not_found', 'conflict'],
    example: {
      body: { role: 'user' },
      returns: { pairing_code: 'K7M-2QX', expires_at: '2026-01-01T12:10:00.000Z', role: 'user' },
    },
    async handle({ params, body }) {
      const place = { channel: channelName(params.name), id: body.account_id ?? DEFAULT_ACCOUNT }
      const { code, expiresAt } = await pairing.request(place, body.role)
      return { pairing_code: code, expires_at: expiresAt, role: body.role }
    },
  })
}

function listRoute({ pairing, channelName }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name/pairing',
    summary: 'List the people who may talk to the bot by a code',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: Params,
    returns: v.object({ people: v.array(Person), pending_codes: v.number() }),
    errors: ['channel_not_found'],
    example: { returns: { people: [person], pending_codes: 0 } },
    async handle({ params }) {
      const channel = channelName(params.name)
      const [people, codes] = await Promise.all([pairing.list(channel), pairing.codes(channel)])
      return { people: people.map(toPerson), pending_codes: codes.length }
    },
  })
}

function removeRoute({ pairing, channelName }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/channels/:name/pairing/:id',
    summary: 'Take the access by a code away',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: v.object({ ...Params.entries, id: v.pipe(v.string(), v.uuid('Invalid id')) }),
    returns: v.object({ status: v.literal('removed') }),
    errors: ['channel_not_found', 'pairing_not_found'],
    async handle({ params }) {
      await pairing.revoke(channelName(params.name), params.id)
      return { status: 'removed' as const }
    },
  })
}

function toPerson({ id, account, sender_id, name, role, paired_at }: Paired): v.InferOutput<typeof Person> {
  return { id, account_id: account, sender_id, name, role, paired_at }
}
