import type * as v from 'valibot'
import { commandLine } from 'svc/sdk'
import type { SignInView } from '../connections/sign-ins.ts'
import type { HandlerDeps } from './handlers.ts'
import type { QrStatusQuery, Step } from './qr-routes.ts'
import type { AccountQuery, ChannelParams } from './schema.ts'
import { chooseAccount, requireChannel } from './views.ts'

interface Input<Query> {
  readonly params: v.InferOutput<typeof ChannelParams>
  readonly query: Query
}

/** What the routes of signing in with a QR code do. */
export function qrHandlers({ accounts, registry, signIns }: Pick<HandlerDeps, 'accounts' | 'registry' | 'signIns'>) {
  return {
    async startSignIn({ params, query }: Input<v.InferOutput<typeof AccountQuery>>): Promise<Step> {
      const { name } = requireChannel(registry, params.name)
      const adapter = await registry.loadIfAdded(name)
      if (!adapter?.signIn)
        return unavailable(
          `${name} has no sign-in with a QR code`,
          `${commandLine(`channels add ${name}`)} stores its credentials`,
        )
      const entries = await accounts.list()
      const id = chooseAccount(entries, name, query.account_id)
      const entry = entries.find((one) => one.channel === name && one.id === id)
      if (!entry) return unavailable(`${name} is not configured`, `${commandLine(`channels add ${name}`)} first`)
      return toStep(await signIns.start(await accounts.resolve(entry), adapter))
    },
    async signInStatus({ params, query }: Input<v.InferOutput<typeof QrStatusQuery>>): Promise<Step> {
      const { name } = requireChannel(registry, params.name)
      const id = chooseAccount(await accounts.list(), name, query.account_id)
      const view = signIns.find(name, id, query.session_id)
      return view ? toStep(view) : { ...unavailable('There is no such sign-in.', 'start one'), expired: true }
    },
  }
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
