import type { ExternalAuth as Settings } from './section.ts'

type ProviderSection = Omit<Settings['providers'][number], 'id'>

/** A provider people can sign in with. */
export interface Provider {
  readonly id: string
  readonly displayName: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly redirectUrl: string
  readonly scopes: readonly string[]
  /** Lower-case; `*` matches all. */
  readonly allowedDomains: readonly string[]
  readonly allowedEmails: readonly string[]
  readonly requireEmailVerified: boolean
  readonly formPost: boolean
  /** Overrides the discovery document. */
  readonly endpoints:
    | { readonly auth: string; readonly token: string; readonly jwks: string; readonly userinfo: string | undefined }
    | undefined
}

/** The provider of the section itself has this id. */
const OWN = 'oidc'

/**
 * The providers of the configuration, or what is wrong with it, which switches sign-in off. `listenAddr` is the address
 * of the daemon, `variable` reads one variable of the environment.
 */
export function readProviders(
  settings: Settings,
  listenAddr: string,
  variable: (name: string) => string | undefined,
): readonly Provider[] | string {
  const sections: readonly (ProviderSection & { readonly id: string })[] = [
    ...(settings.issuer_url === undefined ? [] : [{ id: OWN, ...settings }]),
    ...settings.providers,
  ]
  if (sections.length === 0) return 'external_auth.issuer_url is missing: which provider people sign in with'
  const found: Provider[] = []
  for (const section of sections) {
    const where =
      section.id === OWN && settings.issuer_url !== undefined
        ? 'external_auth'
        : `external_auth.providers "${section.id}"`
    const provider = readProvider(section, settings, listenAddr, variable)
    if (typeof provider === 'string') return `${where}: ${provider}`
    if (found.some(({ id }) => id === provider.id)) return `${where}: there are two providers with this id`
    // One cookie, one page to come back to.
    if (found.some(({ redirectUrl }) => new URL(redirectUrl).origin !== new URL(provider.redirectUrl).origin))
      return `${where}: redirect_url has another origin than that of the providers before`
    found.push(provider)
  }
  return found
}

type NamedSection = ProviderSection & { readonly id: string }

function readProvider(
  section: NamedSection,
  above: Settings,
  listenAddr: string,
  variable: (name: string) => string | undefined,
): Provider | string {
  const { issuer_url: issuer, client_secret_env: variableName } = section
  const clientId = section.client_id ?? above.client_id
  if (issuer === undefined) return 'issuer_url is missing'
  if (clientId === undefined) return 'client_id is missing'
  if (!isProtected(issuer)) return 'issuer_url must be https, because whoever can change what it answers can sign in'
  const redirectUrl = section.redirect_url ?? above.redirect_url ?? defaultRedirectUrl(listenAddr)
  if (!isProtected(redirectUrl)) return 'redirect_url must be https, or be on this machine'
  if (new URL(redirectUrl).pathname !== '/api/auth/callback') return 'redirect_url must end in /api/auth/callback'
  const clientSecret = section.client_secret ?? (variableName === undefined ? undefined : variable(variableName))
  if (variableName !== undefined && !clientSecret)
    return `the variable ${variableName}, which client_secret_env names, is not set`
  const allowed = readAllowed(section, above)
  if (typeof allowed === 'string') return allowed
  const endpoints = readEndpoints(section)
  if (typeof endpoints === 'string') return endpoints
  return {
    id: section.id,
    displayName: section.display_name ?? new URL(issuer).hostname,
    issuer,
    clientId,
    clientSecret,
    redirectUrl,
    scopes: readScopes(section.scopes.length > 0 ? section.scopes : above.scopes),
    ...allowed,
    requireEmailVerified: above.require_email_verified,
    formPost: (section.response_mode ?? above.response_mode) === 'form_post',
    endpoints,
  }
}

function defaultRedirectUrl(listenAddr: string): string {
  return `http://${listenAddr.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, '127.0.0.1')}/api/auth/callback`
}

function readScopes(scopes: readonly string[]): readonly string[] {
  if (scopes.length === 0) return ['openid', 'profile', 'email']
  return scopes.includes('openid') ? scopes : ['openid', ...scopes]
}

/** An account at a public provider is free: without a rule anybody could become an operator. */
function readAllowed(
  section: NamedSection,
  above: Settings,
): Pick<Provider, 'allowedDomains' | 'allowedEmails'> | string {
  const lower = (own: readonly string[], all: readonly string[]): string[] =>
    (own.length > 0 ? own : all).map((name) => name.trim().toLowerCase())
  const allowedDomains = lower(section.allowed_domains, above.allowed_domains)
  const allowedEmails = lower(section.allowed_emails, above.allowed_emails)
  if (allowedDomains.length + allowedEmails.length === 0)
    return (
      'nobody can sign in: set allowed_domains or allowed_emails; ' +
      'allowed_domains = ["*"] admits everybody the provider knows'
    )
  const wrong =
    allowedDomains.find((domain) => domain !== '*' && !/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(domain)) ??
    allowedEmails.find((email) => domainOf(email) === undefined)
  if (wrong !== undefined) return `"${wrong}" is neither a domain such as example.org nor an e-mail address`
  return { allowedDomains, allowedEmails }
}

/** The endpoints that replace the discovery document: all three, or none. */
function readEndpoints(section: NamedSection): Provider['endpoints'] | string {
  const { auth_url: auth, token_url: token, jwks_uri: jwks, userinfo_url: userinfo } = section
  if (auth === undefined && token === undefined && jwks === undefined) return undefined
  if (auth === undefined || token === undefined || jwks === undefined)
    return 'auth_url, token_url and jwks_uri go together'
  return { auth, token, jwks, userinfo }
}

/** Encrypted, or never leaves this machine. */
export function isProtected(address: string): boolean {
  const url = URL.parse(address)
  return (
    url?.protocol === 'https:' ||
    (url?.protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname))
  )
}

/** The domain of an e-mail address in lower case; `undefined` when it is invalid or ambiguous. */
function domainOf(email: string): string | undefined {
  return /^[^@\s"<>,;]+@([a-z0-9-]+(?:\.[a-z0-9-]+)*)$/.exec(email.toLowerCase())?.[1]
}

/** The claims of a provider about a person, and the identity they have here. */
export interface Identity {
  readonly provider: string
  readonly issuer: string
  readonly sub: string
  readonly email: string | undefined
  readonly email_verified: boolean
  readonly name: string | undefined
  readonly picture: string | undefined
}

/** Why this person may not sign in; `undefined` when they may. */
export function refusalOf(
  { email, email_verified: verified }: Pick<Identity, 'email' | 'email_verified'>,
  provider: Provider,
): string | undefined {
  const domain = email === undefined ? undefined : domainOf(email)
  if (!provider.allowedDomains.includes('*')) {
    if (email === undefined || domain === undefined) return 'The provider sent no e-mail address'
    if (!provider.allowedEmails.includes(email.toLowerCase()) && !provider.allowedDomains.includes(domain))
      return 'This e-mail address is not among those that may sign in'
  }
  if (email !== undefined && provider.requireEmailVerified && !verified)
    return 'The provider has not verified this e-mail address'
  return undefined
}
