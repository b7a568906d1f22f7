import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { RouteDeps } from './routes.ts'
import { PollParams, ProviderParams, SignInState, SignInStarted } from './schema.ts'
import type { SignIns } from './sign-in.ts'

/** Signing in to a provider with a code that is entered in a browser anywhere (Interface 4.6). */
export function signInRoutes({
  connections,
  keys,
  fetch,
  changed,
}: Pick<RouteDeps, 'connections' | 'keys' | 'fetch' | 'changed'>): readonly AnyRoute[] {
  let created: Promise<SignIns> | undefined
  const signIns = (): Promise<SignIns> => (created ??= create())
  async function create(): Promise<SignIns> {
    const { SignIns } = await import('./sign-in.ts')
    return new SignIns({
      fetch,
      now: () => performance.now(),
      async granted(provider, token) {
        await changed(provider, `key of provider ${provider} stored after signing in`, (entries) =>
          keys.store(provider, token, connections.baseUrl(provider), { entries }),
        )
      },
    })
  }

  const start = defineRoute({
    method: 'POST',
    path: '/api/providers/:name/oauth/start',
    summary: 'Begin to sign in to a provider with a device code',
    auth: 'bearer',
    effect: 'lasting',
    cost: 20,
    description:
      'Show `user_code` and `verification_uri` to a person and poll with `poll_id`. `device_code` is the same id: the code of the vendor stays here.',
    params: ProviderParams,
    returns: SignInStarted,
    errors: ['provider_not_found', 'invalid_request'],
    async handle({ params: { name }, signal }) {
      const at = connections.signIn(name)
      if (at === 'unknown')
        throw new Refusal(
          'provider_not_found',
          `Provider '${name}' not found${suggest(findNearest(name, connections.names()))}`,
        )
      if (!at)
        throw new Refusal(
          'invalid_request',
          `Provider ${name} is not signed in to: POST its key to /api/providers/${name}/key`,
        )
      const { id, userCode, verificationUri, expiresIn, interval } = await (await signIns()).start(name, at, signal)
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

  const poll = defineRoute({
    method: 'GET',
    path: '/api/providers/:name/oauth/poll/:poll_id',
    summary: 'How a sign-in stands',
    auth: 'bearer',
    effect: 'lasting',
    cost: 2,
    description:
      'Poll every `interval` seconds. With `authorized` the key is stored and holds; with `expired` `error` says why.',
    params: PollParams,
    returns: SignInState,
    errors: ['sign_in_not_found'],
    async handle({ params: { name, poll_id: id } }) {
      const state = await (await signIns()).poll(name, id)
      return {
        status: state.status,
        provider: name,
        interval: state.interval,
        ...(state.status === 'expired' && state.because !== undefined && { error: state.because }),
      }
    },
  })
  return [start, poll]
}
