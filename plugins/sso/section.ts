import * as v from 'valibot'
import { fields } from 'svc/sdk'

/** One OpenID provider. Missing fields come from `[external_auth]`. */
const signInProvider = {
  issuer_url: fields.webAddress(
    'Issuer of the OpenID provider, such as https://accounts.example.org. Plain http only on this machine.',
  ),
  client_id: fields.text('Id of this daemon at the provider.'),
  client_secret: fields.secretText(
    'Secret of this daemon at the provider. Without one it is a public client, which PKCE protects.',
  ),
  client_secret_env: fields.variable('Environment variable that holds the secret.'),
  redirect_url: fields.webAddress(
    'Address of /api/auth/callback as browsers reach it, exactly as it is registered at the provider; ' +
      'http://<listen_addr>/api/auth/callback when unset.',
  ),
  display_name: fields.text('What the button to sign in says.'),
  scopes: fields.texts('Requested scopes; openid, profile and email when empty.'),
  allowed_domains: fields.texts(
    'Domains of e-mail addresses that may sign in; "*" lets in everybody the provider knows.',
  ),
  allowed_emails: fields.texts('Single e-mail addresses that may sign in.'),
  response_mode: v.optional(
    v.pipe(v.picklist(['query', 'form_post']), v.description('How the provider sends people back.')),
  ),
  auth_url: fields.webAddress(
    'Where people sign in. Together with token_url and jwks_uri it stands for the discovery document of the issuer.',
  ),
  token_url: fields.webAddress('Where codes are exchanged.'),
  jwks_uri: fields.webAddress("Where the provider's public keys are."),
  userinfo_url: fields.webAddress('Where more about a person is.'),
}
const anotherWayIn = 'is a way in beside the API key, which outlives a new key'
/** `[external_auth]` at the top of the file. */
export const ExternalAuth = fields.table(
  'Signing in to the chat page with an OpenID provider instead of the API key. ' +
    'Signed-in users can use all agents; changes of the daemon itself need the key.',
  fields.inFile(anotherWayIn),
  {
    enabled: fields.flag('Let people sign in.'),
    ...signInProvider,
    require_email_verified: fields.flag('Refuse e-mail addresses that the provider did not verify.', {}, true),
    session_ttl_secs: fields.integer('How long a sign-in lasts.', 86_400, 60, 2_592_000),
    max_sessions: fields.integer('Sign-ins that can last at the same time.', 1000, 1, 100_000),
    max_sessions_per_user: fields.integer(
      'Sign-ins of one person that can last at the same time; the oldest ends for a new one.',
      20,
      1,
      1000,
    ),
    timeout_ms: fields.integer('Time an answer of the provider may take.', 10_000, 100, 60_000),
    providers: v.optional(
      v.pipe(
        v.array(
          v.object({
            id: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'letters, digits, - and _')),
            ...signInProvider,
          }),
        ),
        v.maxLength(20, 'a list of at most 20 tables, each with an id of small letters, digits, - and _'),
        v.description('Several providers: each has an id and the keys above, from issuer_url to userinfo_url.'),
      ),
      [],
    ),
  },
)
export type ExternalAuth = v.InferOutput<typeof ExternalAuth>
