import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, PluginCredentials, RequestFacts } from 'svc/sdk'
import { Introspected, Introspection, SignedOut, SignInParams, SignIns, UserInfo } from './schema.ts'
import type { Session } from './schema.ts'
import { personIdOf } from './person-id.ts'
import type { Sessions } from './sessions.ts'

const inactive = { active: false, error: 'The token is not active' }

const example = {
  id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d',
  user_id: '5c1f0a52-51f7-5d6e-9a5b-3f1f3f0f7c11',
  provider: 'oidc',
  sub: '248289761001',
  email: 'ada@example.org',
  name: 'Ada',
  created_at: '2026-01-01T12:00:00.000Z',
  expires_at: '2026-01-02T12:00:00.000Z',
}

interface AccountContext {
  readonly sessions: Sessions | undefined
  readonly credentials: PluginCredentials
  readonly sessionOf: (principal: RequestFacts['principal']) => Session | undefined
}

/** For callers who are authenticated already; without `sessions` nobody is signed in. */
export function accountRoutes(sessions: Sessions | undefined, credentials: PluginCredentials): readonly AnyRoute[] {
  const context: AccountContext = {
    sessions,
    credentials,
    sessionOf: (principal) => (principal.kind === 'user' ? sessions?.byId(principal.id) : undefined),
  }
  return [
    userInfoRoute(context),
    introspectRoute(context),
    signOutRoute(context),
    listRoute(context),
    endRoute(context),
  ]
}

function userInfoRoute({ sessionOf }: AccountContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/userinfo',
    summary: 'Who the caller is',
    description:
      'For a person who signed in: what the provider reported at that time (its ID token and its userinfo endpoint). ' +
      'Nothing about anybody else.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: UserInfo,
    example: {
      returns: {
        auth_method: 'external_oauth',
        issuer: 'https://accounts.example.org',
        provider: 'oidc',
        sub: '248289761001',
        email: 'ada@example.org',
        email_verified: true,
        name: 'Ada',
        picture: null,
        user_id: example.user_id,
        roles: [],
      },
    },
    handle({ principal }) {
      const session = sessionOf(principal)
      if (session) {
        const { issuer, provider, sub, email, email_verified, name, picture } = session
        return {
          auth_method: 'external_oauth' as const,
          issuer,
          provider,
          sub,
          email,
          email_verified,
          name,
          picture,
          user_id: personIdOf(session),
          roles: [],
        }
      }
      if (principal.kind === 'device') return { auth_method: 'device' as const, issuer: '', name: principal.name }
      return { auth_method: principal.kind === 'operator' ? ('api_key' as const) : ('none' as const), issuer: '' }
    },
  })
}

function introspectRoute({ sessions, credentials, sessionOf }: AccountContext): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/auth/introspect',
    summary: 'Whether a token of a sign-in is active',
    description:
      'With the API key: of any sign-in. A signed-in user learns about their own tokens only: ' +
      'those of others, of devices and the API key itself are answered as one that never was. ' +
      'An answer that a token is not active counts as a wrong key does.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    body: Introspection,
    returns: Introspected,
    errors: ['rate_limit'],
    example: {
      body: { token: 'svc_sso_…' },
      returns: {
        active: true,
        provider: 'oidc',
        sub: '248289761001',
        email: 'ada@example.org',
        name: 'Ada',
        roles: [],
        iss: 'https://accounts.example.org',
        exp: 1_767_312_000,
        iat: 1_767_225_600,
      },
    },
    handle({ body, principal, clientAddress, requestId }) {
      credentials.checkAttempts(clientAddress)
      // Everything is looked up before a decision, so the time does not depend on the token.
      const found = sessions?.byToken(body.token)
      const own = sessionOf(principal)
      const visible =
        own === undefined
          ? principal.kind === 'operator' || principal.kind === 'anonymous'
          : found?.issuer === own.issuer && found.sub === own.sub
      if (found && visible && (body.provider === undefined || body.provider === found.provider))
        return describeToken(found)
      credentials.failed({
        clientAddress,
        method: 'POST',
        path: '/api/auth/introspect',
        requestId,
        what: 'a token that is not active',
      })
      return inactive
    },
  })
}

function signOutRoute({ sessions, sessionOf }: AccountContext): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/auth/logout',
    summary: 'Sign out',
    description:
      'Ends the sign-in this request is made with: its token opens nothing from then on, ' +
      'and its open connections end at once. The person stays signed in at the provider.',
    auth: 'bearer',
    effect: 'own',
    cost: 2,
    returns: SignedOut,
    errors: ['conflict'],
    example: { returns: { status: 'signed_out' } },
    async handle({ principal, clientAddress }) {
      const session = sessionOf(principal)
      if (!sessions || !session)
        throw new Refusal(
          'conflict',
          'This request was not made with a sign-in: the API key and the key of a device are none',
        )
      await sessions.remove(session, `themselves at ${clientAddress}`)
      return { status: 'signed_out' as const }
    },
  })
}

function listRoute({ sessions }: AccountContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/sessions',
    summary: 'List who is signed in, the oldest first',
    auth: 'bearer',
    effect: 'lasting',
    cost: 2,
    returns: SignIns,
    example: { returns: { sessions: [example], total: 1 } },
    handle() {
      const found = (sessions?.list() ?? []).map(
        ({ id, provider, issuer, sub, email, name, created_at, expires_at }) => ({
          id,
          user_id: personIdOf({ issuer, sub }),
          provider,
          sub,
          email,
          name,
          created_at,
          expires_at,
        }),
      )
      return { sessions: found, total: found.length }
    },
  })
}

function endRoute({ sessions }: AccountContext): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/auth/sessions/:id',
    summary: 'End the sign-in of a user',
    description: 'Its token opens nothing from then on, and its open connections end at once.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: SignInParams,
    returns: SignedOut,
    errors: ['session_not_found'],
    example: { returns: { status: 'signed_out' } },
    async handle({ params, principal, clientAddress }) {
      const session = sessions?.byId(params.id)
      if (!sessions || !session) throw new Refusal('session_not_found', `No sign-in ${params.id}`)
      await sessions.remove(session, `${principal.kind} at ${clientAddress}`)
      return { status: 'signed_out' as const }
    },
  })
}

function describeToken({ provider, sub, email, name, issuer, created_at, expires_at }: Session) {
  return {
    active: true,
    provider,
    sub,
    email,
    name,
    roles: [],
    iss: issuer,
    exp: seconds(expires_at),
    iat: seconds(created_at),
  }
}

const seconds = (time: string): number => Math.floor(Date.parse(time) / 1000)
