import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { SignIns, SignInView } from '../connections/sign-ins.ts'
import { AccountQuery, ChannelParams } from './schema.ts'
import { chooseAccount, requireChannel } from './views.ts'
import type { ViewDeps } from './views.ts'

export interface QrDeps extends Pick<ViewDeps, 'accounts' | 'registry'> {
  readonly signIns: SignIns
}

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
type Step = v.InferOutput<typeof Step>
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

export function qrRoutes(deps: QrDeps): readonly AnyRoute[] {
  return [startRoute(deps), statusRoute(deps)]
}

function startRoute({ accounts, registry, signIns }: QrDeps): AnyRoute {
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
    async handle({ params, query }) {
      const { name } = requireChannel(registry, params.name)
      const adapter = registry.find(name) ? await registry.load(name) : undefined
      if (!adapter?.signIn) return unavailable(`${name} has no sign-in with a QR code`, `configure its credentials`)
      const entries = await accounts.list()
      const id = chooseAccount(entries, name, query.account_id)
      const entry = entries.find((one) => one.channel === name && one.id === id)
      if (!entry) return unavailable(`${name} is not configured`, `POST /api/channels/${name}/configure first`)
      return toStep(await signIns.start(await accounts.resolve(entry), adapter))
    },
  })
}

function statusRoute({ accounts, registry, signIns }: QrDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name/qr/status',
    summary: 'How far signing in with a QR code has come',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    params: ChannelParams,
    query: v.object({ ...AccountQuery.entries, session_id: v.optional(v.pipe(v.string(), v.maxLength(64))) }),
    returns: Step,
    errors: ['channel_not_found'],
    example: { returns: example },
    async handle({ params, query }) {
      const { name } = requireChannel(registry, params.name)
      const id = chooseAccount(await accounts.list(), name, query.account_id)
      const view = signIns.find(name, id, query.session_id)
      return view ? toStep(view) : { ...unavailable('There is no such sign-in.', 'start one'), expired: true }
    },
  })
}

function unavailable(message: string, help: string): Step {
  return {
    available: false,
    status: null,
    session_id: null,
    qr_payload: null,
    qr_data_url: null,
    expires_at: null,
    connected: false,
    expired: false,
    message,
    help,
  }
}
async function toStep({ id, step, isExpired, message }: SignInView): Promise<Step> {
  const payload = isExpired ? undefined : step?.payload
  return {
    available: true,
    status: step?.status ?? null,
    session_id: id,
    qr_payload: payload ?? null,
    qr_data_url: payload === undefined ? null : await toImage(payload),
    expires_at: step?.expiresAt ?? null,
    connected: step?.status === 'authenticated',
    expired: isExpired,
    message,
  }
}
async function toImage(payload: string): Promise<string> {
  const { renderSVG } = await import('uqr')
  return `data:image/svg+xml;base64,${Buffer.from(renderSVG(payload)).toString('base64')}`
}
