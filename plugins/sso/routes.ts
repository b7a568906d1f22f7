import * as v from 'valibot'
import { defineRoute, rawBody, Refusal } from 'svc/sdk'
import type { AnyRoute, PluginCredentials, Reply, RequestFacts } from 'svc/sdk'
import type { SignInFlow } from './sign-in-flow.ts'
import { redirect, unknownProvider } from './answers.ts'
import type { Provider } from './config.ts'
import type { SignInService } from './sign-in-service.ts'
import { Callback, Failed, Handover, LoginParams, LoginQuery, Providers, SignedIn } from './schema.ts'

const example = {
  token: 'svc_sso_…',
  token_type: 'Bearer',
  expires_in: 86_400,
  provider: 'oidc',
  user: { sub: '248289761001', email: 'ada@example.org', name: 'Ada', picture: null },
}
const TOKEN_DESCRIPTION =
  'Answers the token of a sign-in, which is sent as `Authorization: Bearer` like the API key. ' +
  'A sign-in that the chat page began ends at the page instead, which fetches the token.'

/** The other redirects of a browser, and the message about a provider that failed. */
const otherAnswers = {
  303: { description: 'Back to the chat page' },
  502: { description: 'The provider could not be reached, or its answer was invalid', json: Failed },
}

interface SignInContext {
  readonly providers: readonly Provider[]
  readonly auth: 'public' | 'bearer'
  readonly flow: () => Promise<SignInFlow>
  readonly credentials: PluginCredentials
}

/**
 * Callers who are not signed in yet need these: they are public while signing in is configured, and only then (security
 * facts 3.1).
 */
export function signInRoutes(service: SignInService | string, credentials: PluginCredentials): readonly AnyRoute[] {
  const providers = typeof service === 'string' ? [] : service.providers
  const context: SignInContext = {
    providers,
    auth: providers.length > 0 ? 'public' : 'bearer',
    credentials,
    flow: async () => {
      if (typeof service !== 'string') return service.flow()
      throw new Refusal('service_unavailable', `Signing in is not configured: ${service}`)
    },
  }
  return [
    providersRoute(context),
    loginRoute(context),
    namedLoginRoute(context),
    callbackRoute(context),
    postedCallbackRoute(context),
    sessionRoute(context),
  ]
}

async function beginLogin(
  { providers, flow }: SignInContext,
  id: string | undefined,
  query: { readonly to?: string | undefined; readonly moved?: string | undefined },
  request: RequestFacts,
): Promise<Reply> {
  const started = await flow()
  const provider = id === undefined ? providers[0] : providers.find((known) => known.id === id)
  if (!provider)
    throw unknownProvider(
      id ?? '',
      providers.map((known) => known.id),
    )
  const page = query.to === 'page'
  // The provider sends the browser back to the host of the redirect address, and the cookie has to be there:
  // localhost is not 127.0.0.1.
  const home = new URL(provider.redirectUrl)
  if (query.moved === undefined && request.header('host')?.toLowerCase() !== home.host)
    return redirect(`${home.origin}/api/auth/login/${provider.id}?${page ? 'to=page&' : ''}moved=1`, 302)
  return started.begin(provider, page, request)
}

function providersRoute({ providers, auth }: SignInContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/providers',
    summary: 'List the sign-in providers',
    auth,
    effect: 'read',
    cost: 1,
    returns: Providers,
    example: { returns: { enabled: true, providers: [{ id: 'oidc', display_name: 'Example' }] } },
    handle: () => ({
      enabled: providers.length > 0,
      providers: providers.map(({ id, displayName }) => ({ id, display_name: displayName })),
    }),
  })
}

function loginRoute(context: SignInContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/login',
    summary: 'Sign in with the first provider',
    description: 'Sends the browser to the provider, with status 302.',
    auth: context.auth,
    effect: 'own',
    cost: 20,
    query: LoginQuery,
    returns: v.unknown(),
    status: 302,
    answers: otherAnswers,
    errors: ['service_unavailable'],
    handle: (input) => beginLogin(context, undefined, input.query, input),
  })
}

function namedLoginRoute(context: SignInContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/login/:provider',
    summary: 'Sign in with a provider',
    description: 'Sends the browser to the provider, with status 302.',
    auth: context.auth,
    effect: 'own',
    cost: 20,
    params: LoginParams,
    query: LoginQuery,
    returns: v.unknown(),
    status: 302,
    answers: otherAnswers,
    errors: ['provider_not_found', 'service_unavailable'],
    handle: (input) => beginLogin(context, input.params.provider, input.query, input),
  })
}

function callbackRoute({ auth, flow }: SignInContext): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/auth/callback',
    summary: 'Where the provider sends people back to',
    description: TOKEN_DESCRIPTION,
    auth,
    effect: 'own',
    cost: 20,
    query: Callback,
    returns: SignedIn,
    answers: otherAnswers,
    errors: ['unauthorized', 'service_unavailable'],
    example: { returns: example },
    async handle(input) {
      return (await flow()).complete(
        new URLSearchParams(
          Object.entries(input.query).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
        ),
        input,
      )
    },
  })
}

function postedCallbackRoute({ auth, flow }: SignInContext): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/auth/callback',
    summary: 'Where the provider sends people back to, with a form',
    description: `For \`response_mode = "form_post"\`; the same as JSON is taken as well. ${TOKEN_DESCRIPTION}`,
    // The only route of all that another site may post to: what protects it is the state, which is bound to the browser
    // by a cookie.
    auth,
    crossSite: auth === 'public',
    effect: 'own',
    cost: 20,
    body: rawBody(16_384, Callback),
    returns: SignedIn,
    answers: otherAnswers,
    errors: ['unauthorized', 'service_unavailable'],
    example: { body: { code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'af0ifjsldkj' }, returns: example },
    async handle(input) {
      return (await flow()).completePosted(input.body, input)
    },
  })
}

function sessionRoute({ auth, flow, credentials }: SignInContext): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/auth/session',
    summary: 'Fetch the token of a sign-in the chat page began',
    description: 'The page was sent `#sso=<code>`; the code counts once, for a minute, in the browser that signed in.',
    auth,
    effect: 'own',
    cost: 5,
    body: Handover,
    returns: SignedIn,
    errors: ['service_unavailable'],
    example: { body: { code: 'Zk3…' }, returns: example },
    async handle(input) {
      credentials.checkAttempts(input.clientAddress)
      return (await flow()).fetchToken(input.body.code, input)
    },
  })
}
