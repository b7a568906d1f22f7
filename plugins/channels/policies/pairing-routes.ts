import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { defineRoute, line } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AccountId } from '../accounts/account-id.ts'
import type { RouteDeps } from '../http/routes.ts'
import { roles } from './roles.ts'

const Params = v.object({ name: line(64) })
export const Person = v.object({
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
export function pairingRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [requestRoute(deps), listRoute(deps), removeRoute(deps)]
}

function requestRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/pairing',
    summary: 'Get a code that lets a person talk to the bot',
    description:
      'The person sends it to the bot in a direct chat. It works once, and only for a few minutes. ' +
      'Operators may also approve what agents do and change the model.',
    auth: 'bearer',
    effect: 'lasting',
    idempotent: false,
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
    handle: async (input) => (await host()).handlers.requestPairing(input),
  })
}

function listRoute({ host }: RouteDeps): AnyRoute {
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
    handle: async (input) => (await host()).handlers.listPaired(input),
  })
}

function removeRoute({ host }: RouteDeps): AnyRoute {
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
    handle: async (input) => (await host()).handlers.revokePairing(input),
  })
}
