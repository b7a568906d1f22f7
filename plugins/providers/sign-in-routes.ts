import { findNearest, suggest } from 'svc/internal'
import { defineRoute, omitUndefined, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { DeviceSignIn } from 'svc/providers'
import type { Connections } from './connection.ts'
import type { ProviderRouteDeps } from './routes.ts'
import { PollParams, ProviderParams, SignInState, SignInStarted } from './schema.ts'
import type { SignIns } from './sign-in.ts'

/** Signing in to a provider with a code that is entered in a browser anywhere (Interface 4.6). */
export function signInRoutes(deps: ProviderRouteDeps): readonly AnyRoute[] {
  let created: Promise<SignIns> | undefined
  const signIns = (): Promise<SignIns> => (created ??= createSignIns(deps))
  return [startRoute(deps.connections, signIns), pollRoute(signIns)]
}

/** Imported with the first sign-in: a start does not pay for it. */
async function createSignIns({ connections, keys, fetch, change }: ProviderRouteDeps): Promise<SignIns> {
  const { SignIns } = await import('./sign-in.ts')
  return new SignIns({
    fetch,
    now: () => performance.now(),
    async granted(provider, token) {
      await change(provider, `key of provider ${provider} stored after signing in`, (entries) =>
        keys.store(provider, token, connections.baseUrl(provider), { entries }),
      )
    },
  })
}

function startRoute(connections: Connections, signIns: () => Promise<SignIns>): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/providers/:name/oauth/start',
    summary: 'Begin to sign in to a provider with a device code',
    auth: 'bearer',
    effect: 'lasting',
    cost: 20,
    description:
      'Show `user_code` and `verification_uri` to a person and poll with `poll_id`. `device_code` is the same id: ' +
      "the vendor's own device code is not sent out.",
    params: ProviderParams,
    returns: SignInStarted,
    errors: ['provider_not_found', 'invalid_request'],
    async handle({ params: { name }, signal }) {
      const endpoint = requireSignIn(connections, name)
      const { id, userCode, verificationUri, expiresIn, interval } = await (
        await signIns()
      ).start(name, endpoint, signal)
      return {
        device_code: id,
        user_code: userCode,
        verification_uri: verificationUri,
        poll_id: id,
        expires_in: expiresIn,
        interval,
      }
    },
  })
}

function pollRoute(signIns: () => Promise<SignIns>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/providers/:name/oauth/poll/:poll_id',
    summary: 'Read the state of a sign-in',
    auth: 'bearer',
    effect: 'lasting',
    cost: 2,
    description:
      'Poll every `interval` seconds. With `authorized` the key is stored and in use; with `expired`, `error` is ' +
      'the reason.',
    params: PollParams,
    returns: SignInState,
    errors: ['sign_in_not_found'],
    async handle({ params: { name, poll_id: id } }) {
      const state = await (await signIns()).poll(name, id)
      const error = state.status === 'expired' ? state.because : undefined
      return { status: state.status, provider: name, interval: state.interval, ...omitUndefined({ error }) }
    },
  })
}

function requireSignIn(connections: Connections, name: string): DeviceSignIn {
  const found = connections.signIn(name)
  if (found === 'unknown') {
    const nearest = suggest(findNearest(name, connections.names()))
    throw new Refusal('provider_not_found', `Provider '${name}' not found${nearest}`)
  }
  if (found) return found
  throw new Refusal('invalid_request', `Provider ${name} has no sign-in: POST its key to /api/providers/${name}/key`)
}
