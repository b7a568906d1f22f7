import { readJson, Refusal, reply } from 'svc/sdk'
import type { PluginCredentials, Reply, RequestFacts } from 'svc/sdk'
import * as v from 'valibot'
import type { Identity, Provider } from './config.ts'
import { cookiesFor } from './cookie.ts'
import { redirect } from './answers.ts'
import { Callback } from './schema.ts'
import type { SignedIn } from './schema.ts'
import type { Sessions } from './sessions.ts'
import { SignInFailed } from './sign-in.ts'
import type { SignIn } from './sign-in.ts'

export interface SignInFlowDeps {
  readonly signIn: SignIn
  readonly sessions: Sessions
  readonly credentials: PluginCredentials
  readonly ttlSecs: number
  /** The host of one is the host of all: browsers come back to it. */
  readonly redirectUrl: string
  warn(message: string, fields: Record<string, unknown>): void
}
type Facts = Pick<RequestFacts, 'clientAddress' | 'requestId' | 'header'>

const PATH = '/api/auth/callback'

/** The sign-in routes' redirects, cookies and answers. */
export class SignInFlow {
  readonly #deps: SignInFlowDeps
  constructor(deps: SignInFlowDeps) {
    this.#deps = deps
  }

  async begin(provider: Provider, page: boolean, request: Facts): Promise<Reply> {
    try {
      const { url, cookie } = await this.#deps.signIn.begin(provider.id, page)
      return redirect(url, 302, cookie)
    } catch (error) {
      return this.#failed(error, request)
    }
  }

  async complete(answer: URLSearchParams, request: Facts): Promise<SignedIn | Reply> {
    const { signIn, credentials, redirectUrl } = this.#deps
    credentials.checkAttempts(request.clientAddress)
    if (!answer.has('state') || (!answer.has('code') && !answer.has('error')))
      throw new Refusal('invalid_request', 'code and state are missing: a sign-in begins at /api/auth/login')
    const cookies = cookiesFor(redirectUrl)
    try {
      const { identity, page } = await signIn.complete(answer, cookies.read(request.header('cookie')))
      if (page) {
        const { code, cookie } = await signIn.handOver(identity, redirectUrl)
        return redirect(`/#sso=${code}`, 303, cookie)
      }
      return this.#answer(identity, request)
    } catch (error) {
      return this.#failed(error, request)
    }
  }

  async completePosted(body: Uint8Array, request: Facts): Promise<SignedIn | Reply> {
    const answer = readForm(body, request.header('content-type'))
    if (cookiesFor(this.#deps.redirectUrl).read(request.header('cookie')) !== undefined)
      return this.complete(answer, request)
    // A browser keeps the cookie back from a form that another site posts, and sends it when it follows a redirect with
    // GET.
    const known = new URLSearchParams([...answer].filter(([name]) => Object.hasOwn(Callback.entries, name)))
    return redirect(`${PATH}?${known.toString()}`, 303)
  }

  async fetchToken(code: string, request: Facts): Promise<Reply> {
    const { signIn, redirectUrl, credentials } = this.#deps
    const cookies = cookiesFor(redirectUrl)
    const identity = await signIn.take(code, cookies.read(request.header('cookie')))
    if (!identity) {
      credentials.failed({
        clientAddress: request.clientAddress,
        method: 'POST',
        path: '/api/auth/session',
        requestId: request.requestId,
        what: 'a sign-in that is over or of another browser',
      })
      throw new Refusal('invalid_request', 'This sign-in is over: begin again')
    }
    return this.#answer(identity, request)
  }

  async #answer(identity: Identity, { clientAddress }: Facts): Promise<Reply> {
    const { sessions, ttlSecs, redirectUrl } = this.#deps
    const { token, session } = await sessions.create(identity, clientAddress)
    const { sub, email, name, picture, provider } = session
    const body: SignedIn = {
      token,
      token_type: 'Bearer',
      expires_in: ttlSecs,
      provider,
      user: { sub, email, name, picture },
    }
    return reply(JSON.stringify(body), {
      'content-type': 'application/json',
      'set-cookie': cookiesFor(redirectUrl).clear(),
    })
  }

  /**
   * Counts like a wrong key, and is reported: to the page by a code, to others by their status. Faults of the provider
   * go to the log.
   */
  #failed(error: unknown, request: Facts): Reply {
    if (!(error instanceof SignInFailed)) throw error
    const { credentials, redirectUrl, warn } = this.#deps
    const { failure, message, cause } = error
    const reason = cause instanceof Error ? reasonOf(cause) : undefined
    if (failure === 'failed') warn(message, { reason, requestId: request.requestId })
    // Without the cookie nothing was attempted, as without a key: foreign pages can cause such requests, and must not
    // lock anybody out with them.
    if (cookiesFor(redirectUrl).read(request.header('cookie')) !== undefined)
      credentials.failed({
        clientAddress: request.clientAddress,
        method: 'GET',
        path: PATH,
        requestId: request.requestId,
        what: `a sign-in: ${message}${reason === undefined ? '' : ` (${reason})`}`,
      })
    const cookie = cookiesFor(redirectUrl).clear()
    // A person at a browser, who needs the page and not JSON.
    if (error.page || request.header('accept')?.includes('text/html') === true)
      return redirect(`/#sso-problem=${failure}`, 303, cookie)
    if (failure === 'expired') throw new Refusal('invalid_request', message)
    if (failure === 'cancelled') throw new Refusal('unauthorized', message)
    if (failure === 'denied') throw new Refusal('forbidden', message)
    return reply(
      JSON.stringify({ error: { code: 'upstream_failure', message, details: {}, request_id: request.requestId } }),
      { 'content-type': 'application/json' },
      502,
    )
  }
}

const ProviderError = v.object({ error: v.string(), error_description: v.optional(v.string()) })
/** What went wrong, with the words the provider had for it: they are for the log and the audit trail only. */
function reasonOf(error: Error): string {
  const { cause } = error
  // In a body (RFC 6749, 5.2), or in a header when it requires other client credentials.
  const challenge = v.safeParse(v.tupleWithRest([v.object({ parameters: ProviderError })], v.unknown()), cause)
  const parameters = challenge.success
    ? challenge.output[0].parameters
    : v.is(ProviderError, error)
      ? v.parse(ProviderError, error)
      : {}
  return [error.message, ...Object.values(parameters), ...(cause instanceof Error ? [reasonOf(cause)] : [])]
    .join(': ')
    .slice(0, 500)
}

function readForm(body: Uint8Array, type = ''): URLSearchParams {
  const essence = type.split(';', 1)[0]?.trim().toLowerCase()
  const text = Buffer.from(body).toString('utf8')
  if (essence === 'application/x-www-form-urlencoded') return new URLSearchParams(text)
  if (essence !== 'application/json')
    throw new Refusal('invalid_request', 'Send a form (application/x-www-form-urlencoded) or application/json')
  let value: unknown
  try {
    value = readJson(text)
  } catch (cause) {
    throw new Refusal('invalid_request', 'The body is not JSON', { cause })
  }
  const parsed = v.safeParse(Callback, value)
  if (!parsed.success) throw new Refusal('invalid_request', 'body: code and state are texts')
  return new URLSearchParams(
    Object.entries(parsed.output).flatMap(([name, one]) => (typeof one === 'string' ? [[name, one]] : [])),
  )
}
