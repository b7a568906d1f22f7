import * as v from 'valibot'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { SERVER_NAME } from '../config.ts'
import type { OAuthLogins } from './logins.ts'
import { serverFailed } from '../errors.ts'
import { CALLBACK_PATH, METADATA_PATH } from './paths.ts'

const Params = v.object({ name: v.pipe(v.string(), v.regex(SERVER_NAME, 'the name of a server')) })
const Text = v.optional(v.pipe(v.string(), v.maxLength(4096)))
const Query = v.object({ state: Text, code: Text, iss: Text, error: Text, error_description: Text })
const Login = v.object({
  name: v.string(),
  /** `pending`: open `authorization_url` in a browser. `logged_in`: nobody had to. */
  status: v.picklist(['pending', 'logged_in']),
  authorization_url: v.nullable(v.string()),
  expires_at: v.nullable(v.string()),
})
const Logout = v.object({ name: v.string(), logged_out: v.boolean() })
const Metadata = v.looseObject({ client_id: v.string() })

export interface OAuthRoutesDeps {
  readonly logins: () => Promise<OAuthLogins>
  readonly isPublic: () => boolean
  readonly origin: () => string
}

/** Rows to log in at MCP servers. */
export function oauthRoutes(deps: OAuthRoutesDeps): readonly AnyRoute[] {
  return [loginRoute(deps), logoutRoute(deps), callbackRoute(deps), metadataRoute(deps)]
}

function loginRoute({ logins }: OAuthRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/mcp/servers/:name/login',
    summary: 'Begin a login at an MCP server',
    description: 'Answers the address that a person opens in a browser, which comes back to this daemon.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 20,
    params: Params,
    returns: Login,
    errors: ['not_found', serverFailed],
    async handle({ params }) {
      const begun = await (await logins()).begin(params.name)
      return {
        name: params.name,
        status: begun ? ('pending' as const) : ('logged_in' as const),
        authorization_url: begun?.url ?? null,
        expires_at: begun ? new Date(begun.expiresAt).toISOString() : null,
      }
    },
  })
}

function logoutRoute({ logins }: OAuthRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/mcp/servers/:name/logout',
    summary: 'Forget the tokens of an MCP server',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: Params,
    returns: Logout,
    errors: ['not_found'],
    handle: async ({ params }) => ({
      name: params.name,
      logged_out: await (await logins()).logout(params.name),
    }),
  })
}

function callbackRoute({ logins }: OAuthRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: CALLBACK_PATH,
    summary: 'Where the browser comes back to after a login at an MCP server',
    description: 'Its state is known to whoever began the login, and counts once.',
    auth: 'public',
    produces: 'text/plain',
    effect: 'own',
    cost: 20,
    query: Query,
    returns: v.string(),
    errors: ['forbidden', serverFailed],
    async handle({ query }) {
      const name = await (await logins()).finish(query)
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'referrer-policy': 'no-referrer' }
      return reply(`Logged in at ${name}. You can close this page.\n`, headers)
    },
  })
}

function metadataRoute({ isPublic, origin, logins }: OAuthRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: METADATA_PATH,
    summary: 'What authorization servers of MCP servers may know of this client',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: Metadata,
    errors: ['not_found'],
    async handle() {
      if (!isPublic()) throw new Refusal('not_found', 'This daemon has no plugins.mcp.public_url')
      const { clientMetadata } = await import('./provider.ts')
      const { redirectUrl } = await logins()
      return {
        client_id: `${origin()}${METADATA_PATH}`,
        ...clientMetadata(redirectUrl, undefined),
        token_endpoint_auth_method: 'none',
      }
    },
  })
}
