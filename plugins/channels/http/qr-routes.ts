import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { RouteDeps } from './routes.ts'
import { AccountQuery, ChannelParams } from './schema.ts'

const Step = v.object({
  available: v.pipe(v.boolean(), v.description('One signs in to this channel with a QR code.')),
  status: v.nullable(v.picklist(['pending', 'scanned', 'authenticated'])),
  session_id: v.nullable(v.string()),
  qr_payload: v.pipe(v.nullable(v.string()), v.description('The text of the QR code.')),
  qr_data_url: v.pipe(v.nullable(v.string()), v.description('The code as an image (SVG).')),
  expires_at: v.nullable(v.string()),
  connected: v.boolean(),
  expired: v.boolean(),
  message: v.string(),
  help: v.optional(v.string()),
})
export const QrStatusQuery = v.object({
  ...AccountQuery.entries,
  session_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
})
export type Step = v.InferOutput<typeof Step>
const example: Step = {
  available: true,
  status: 'pending',
  session_id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
  qr_payload: '2@AbCd…',
  qr_data_url: 'data:image/svg+xml;base64,…',
  expires_at: null,
  connected: false,
  expired: false,
  message: 'Scan the code with the phone.',
}

export function qrRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [startRoute(deps), statusRoute(deps)]
}

function startRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/channels/:name/qr/start',
    summary: 'Start to sign in to a channel with a QR code',
    description:
      'The account is connected when the code was scanned and confirmed. A new start replaces an earlier one.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 20,
    params: ChannelParams,
    query: AccountQuery,
    returns: Step,
    errors: ['channel_not_found'],
    example: { returns: example },
    handle: async (input) => (await host()).handlers.startSignIn(input),
  })
}

function statusRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name/qr/status',
    summary: 'How far signing in with a QR code has come',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    params: ChannelParams,
    query: QrStatusQuery,
    returns: Step,
    errors: ['channel_not_found'],
    example: { returns: example },
    handle: async (input) => (await host()).handlers.signInStatus(input),
  })
}
