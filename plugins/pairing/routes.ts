import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, Fetch, Hooks, Logger } from 'svc/sdk'
import type { Settings } from './config.ts'
import {
  Completion,
  DeviceList,
  DeviceParams,
  Notification,
  Notified,
  Paired,
  PairingState,
  Removal,
  Removed,
  Requested,
} from './schema.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Devices } from './devices.ts'
import type { Pairing } from './service.ts'

export interface PairingRoutesDeps {
  readonly settings: Settings
  readonly devices: Devices
  /** Created with the first pairing. */
  readonly pairing: () => Promise<Pairing>
  readonly audit: Audit
  readonly feed: AuditFeed
  readonly fetch: Fetch
  readonly hooks: Pick<Hooks, 'apply'>
  readonly log: Pick<Logger, 'error'>
}

const example = {
  device_id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
  display_name: "Ada's phone",
  platform: 'android',
  paired_at: '2026-01-01T12:00:00.000Z',
}
const code = {
  pairing_code: 'K7M-2QX',
  token: 'K7M-2QX',
  qr_uri: 'svc://pair?token=K7M-2QX',
  expires_at: '2026-01-01T12:05:00.000Z',
}

/**
 * While pairing is off every route that does something requires the API key and its documentation says so; only while it
 * is on one of them is public (security facts 3.1).
 */
export function pairingRoutes(deps: PairingRoutesDeps): readonly AnyRoute[] {
  return [
    stateRoute(deps),
    requestRoute(deps),
    completeRoute(deps),
    notifyRoute(deps),
    listRoute(deps),
    removeRoute(deps),
  ]
}

function checkEnabled({ enabled }: Settings): void {
  if (!enabled)
    throw new Refusal('not_found', 'Pairing not enabled: write enabled = true under [pairing] into config.toml')
}

/**
 * Decision: public, because a page asks before it has a key. It says no more than `/api/pairing/complete`, which asks for
 * the key only while pairing is off.
 */
function stateRoute({ settings }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/pairing',
    summary: 'Whether devices can be paired',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: PairingState,
    example: { returns: { enabled: true } },
    handle: () => ({ enabled: settings.enabled }),
  })
}

function requestRoute({ settings, pairing }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/pairing/request',
    summary: 'Get a code to pair a device with',
    description:
      'The first caller who sends this code to `/api/pairing/complete` in time gets a key for this daemon. ' +
      'Requires the API key itself: neither a paired device nor a signed-in user can pair others.',
    auth: 'bearer',
    effect: 'lasting',
    idempotent: false,
    cost: 5,
    returns: Requested,
    errors: ['not_found', 'forbidden', 'conflict'],
    example: { returns: code },
    async handle(input) {
      checkEnabled(settings)
      const { code: made, expiresAt } = await (await pairing()).request(input)
      const { linkOf } = await import('./link.ts')
      return {
        pairing_code: made,
        token: made,
        qr_uri: linkOf(made, expiresAt, settings.public_base_url),
        expires_at: expiresAt,
      }
    },
  })
}

function completeRoute({ settings, pairing }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/pairing/complete',
    summary: 'Pair a device with a code',
    description:
      'The device sends this itself: while pairing is enabled no key is needed. ' +
      '`api_key` is shown here and never again; the device sends it as `Authorization: Bearer` from then on. ' +
      'Capitals, spaces and hyphens of the code do not matter. A wrong code counts as a wrong API key does.',
    auth: settings.enabled ? 'public' : 'bearer',
    effect: 'own',
    cost: 50,
    body: Completion,
    returns: Paired,
    errors: ['not_found', 'conflict', 'rate_limit'],
    example: {
      body: { pairing_code: 'K7M-2QX', display_name: "Ada's phone", platform: 'android' },
      returns: { ...example, api_key: 'svc_device_…' },
    },
    async handle({ body, clientAddress, requestId }) {
      checkEnabled(settings)
      const applicant = {
        code: body.pairing_code ?? body.code ?? body.token ?? '',
        name: body.display_name,
        platform: body.platform,
      }
      const { device, key } = await (await pairing()).complete(applicant, { clientAddress, requestId })
      return {
        device_id: device.id,
        display_name: device.display_name,
        platform: device.platform,
        paired_at: device.paired_at,
        api_key: key,
      }
    },
  })
}

function notifyRoute({ settings, devices, audit, fetch }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/pairing/notify',
    summary: 'Send a push notification to all paired devices',
    description:
      'Through ntfy or gotify, as `push_provider` under `[pairing]` says. Answers the number of devices, ' +
      'and 502 with what failed when the service did not take it.',
    auth: 'bearer',
    effect: 'conversation',
    idempotent: false,
    cost: 20,
    body: Notification,
    returns: Notified,
    answers: { 502: { description: 'The push service did not take it', json: Notified } },
    errors: ['not_found', 'service_unavailable'],
    example: { body: { title: 'svc', message: 'The build is done.' }, returns: { ok: true, notified: 2, failed: [] } },
    async handle({ body, signal }) {
      checkEnabled(settings)
      const { push } = await import('./push.ts')
      const result = await push(body, { settings, devices: devices.list(), audit, fetch, signal })
      return result.ok ? result : reply(JSON.stringify(result), { 'content-type': 'application/json' }, 502)
    },
  })
}

function listRoute({ settings, devices }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/pairing/devices',
    summary: 'List the paired devices, the oldest first',
    description: '`last_seen` is when a request with the key of the device came.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: DeviceList,
    errors: ['not_found'],
    example: { returns: { devices: [{ ...example, last_seen: '2026-01-02T08:30:00.000Z' }], total: 1 } },
    handle() {
      checkEnabled(settings)
      const found = devices.list()
      return { devices: [...found], total: found.length }
    },
  })
}

function removeRoute({ settings, devices, feed, hooks, log }: PairingRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/pairing/devices/:id',
    summary: 'Remove a paired device',
    description:
      'Its key opens nothing from then on, and its open connections end at once. ' +
      'A device can remove itself; others are removed with the API key. `effects` are the entries of the audit trail ' +
      'about what it and its turns made or changed. What of it goes on is in `staying`. With `effects=stop`, for which ' +
      'the API key is needed, it is ended and in `stopped`, in one transaction with the removal; turns are stopped ' +
      'after it. A device that was removed before is taken as well then.',
    auth: 'bearer',
    effect: 'own',
    effectOf: ({ principal, params, query }) =>
      principal.kind === 'device' && principal.id === params.id && query.effects === 'keep' ? 'own' : 'lasting',
    cost: 5,
    params: DeviceParams,
    query: Removal,
    returns: Removed,
    errors: ['not_found', 'device_not_found', 'forbidden'],
    example: {
      returns: {
        ok: true,
        device_id: example.device_id,
        effects: [],
        effects_total: 0,
        stopped: [],
        staying: [
          { kind: 'schedule', id: '0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f', name: 'daily', agent_id: '0198c5a0-…' },
        ],
      },
    },
    async handle(input) {
      checkEnabled(settings)
      const { removeDevice } = await import('./removal.ts')
      return removeDevice({ devices, feed, hooks, log }, input, input.params.id, input.query.effects === 'stop')
    },
  })
}
