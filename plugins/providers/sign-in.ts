import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { readJson, Refusal, shortened, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { DeviceSignIn } from 'svc/providers'

/** Abandoned sign-ins; the oldest is dropped for a new one. */
const MAX_FLOWS = 20
const ANSWER_MS = 20_000
const MAX_BYTES = 65_536
/** Defaults of RFC 8628, and the increase on `slow_down`. In seconds. */
const INTERVAL = 5
const SLOWER = 5
const LONGEST = 3600

const Code = v.object({
  device_code: v.pipe(v.string(), v.nonEmpty()),
  user_code: v.pipe(v.string(), v.nonEmpty()),
  verification_uri: v.pipe(v.string(), v.url()),
  expires_in: v.pipe(v.number(), v.minValue(0), v.maxValue(86_400)),
  interval: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(300)), INTERVAL),
})
const Grant = v.object({ access_token: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,8192}$/)) })
const Problem = v.object({
  error: v.string(),
  error_description: v.optional(v.string()),
  interval: v.optional(v.number()),
})

interface Flow {
  readonly provider: string
  readonly at: DeviceSignIn
  readonly deviceCode: string
  readonly until: number
  interval: number
  next: number
  state: SignInState
  asking: Promise<void> | undefined
}
type SignInState =
  | { readonly status: 'pending' | 'authorized' }
  | { readonly status: 'expired'; readonly because?: string }
export interface Started {
  readonly id: string
  readonly userCode: string
  readonly verificationUri: string
  readonly expiresIn: number
  readonly interval: number
}

/**
 * Pending sign-ins with a device code (RFC 8628). The vendor's code never leaves this process: clients poll with an id
 * of ours. They end with the process; after a restart a sign-in begins again.
 */
export class SignIns {
  readonly #fetch: Fetch
  readonly #now: () => number
  /** Durable before it settles. */
  readonly #granted: (provider: string, token: string) => Promise<void>
  readonly #flows = new Map<string, Flow>()

  constructor(parts: {
    readonly fetch: Fetch
    readonly now: () => number
    readonly granted: (provider: string, token: string) => Promise<void>
  }) {
    this.#fetch = parts.fetch
    this.#now = parts.now
    this.#granted = parts.granted
  }

  /** Requests a code from the vendor. Throws `UpstreamFailure` when it returns none. */
  async start(provider: string, at: DeviceSignIn, signal: AbortSignal): Promise<Started> {
    const data = await this.#post(provider, at.codeUrl, { client_id: at.clientId, scope: at.scope }, signal)
    const read = v.safeParse(Code, data)
    if (!read.success) {
      const problem = v.safeParse(Problem, data)
      const reason = problem.success ? describeProblem(problem.output) : ''
      throw new UpstreamFailure(provider, `${provider} gave no code to sign in with${reason}`, {
        reason: problem.success ? 'auth' : 'malformed',
        retry: 'never',
      })
    }
    const {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: verificationUri,
      expires_in: expiresIn,
      interval,
    } = read.output
    const now = this.#now()
    for (const [id, { until }] of this.#flows) if (until <= now) this.#flows.delete(id)
    for (const id of this.#flows.keys()) {
      if (this.#flows.size < MAX_FLOWS) break
      this.#flows.delete(id)
    }
    const id = randomUUID()
    this.#flows.set(id, {
      provider,
      at,
      deviceCode,
      until: now + Math.min(expiresIn, LONGEST) * 1000,
      interval,
      next: now + interval * 1000,
      state: { status: 'pending' },
      asking: undefined,
    })
    return { id, userCode, verificationUri, expiresIn, interval }
  }

  /**
   * The state of a sign-in. Polls the vendor at most as often as the vendor allows; calls in between get the last known
   * state.
   */
  async poll(provider: string, id: string): Promise<SignInState & { readonly interval: number }> {
    const flow = this.#flows.get(id)
    if (!flow || flow.provider !== provider)
      throw new Refusal(
        'sign_in_not_found',
        `There is no sign-in ${id}: it ended long ago, or the daemon was restarted. Start a new one.`,
      )
    const now = this.#now()
    if (flow.state.status === 'pending' && now >= flow.until)
      flow.state = { status: 'expired', because: 'the code was not entered in time' }
    if (flow.state.status === 'pending' && (flow.asking || now >= flow.next))
      await (flow.asking ??= this.#ask(flow).finally(() => {
        flow.asking = undefined
      }))
    return { ...flow.state, interval: flow.interval }
  }

  async #ask(flow: Flow): Promise<void> {
    flow.next = this.#now() + flow.interval * 1000
    // With a time-out of its own, not the caller's signal: a token that is issued once must not be lost because the
    // caller hung up.
    const data = await this.#post(
      flow.provider,
      flow.at.tokenUrl,
      {
        client_id: flow.at.clientId,
        device_code: flow.deviceCode,
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      },
      undefined,
    )
    const grant = v.safeParse(Grant, data)
    if (grant.success) {
      await this.#granted(flow.provider, grant.output.access_token)
      flow.state = { status: 'authorized' }
      return
    }
    const problem = v.safeParse(Problem, data)
    if (!problem.success)
      throw new UpstreamFailure(
        flow.provider,
        `${flow.provider} answered a sign-in with something that cannot be read`,
        { reason: 'malformed', retry: 'later' },
      )
    const { error, error_description: description, interval } = problem.output
    switch (error) {
      case 'authorization_pending':
        return
      case 'slow_down':
        flow.interval = Math.min(interval ?? flow.interval + SLOWER, LONGEST)
        flow.next = this.#now() + flow.interval * 1000
        return
      case 'expired_token':
        flow.state = { status: 'expired', because: 'the code was not entered in time' }
        return
      case 'access_denied':
        flow.state = { status: 'expired', because: 'the sign-in was refused' }
        return
      default:
        flow.state = { status: 'expired', because: shortened(`${error}${description ? `: ${description}` : ''}`) }
    }
  }

  /** OAuth reports problems in a body, with 200 or 400. */
  async #post(
    provider: string,
    url: string,
    form: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const response = await this.#fetch(url, {
      method: 'POST',
      body: new URLSearchParams(form).toString(),
      ...(signal && { signal }),
      totalTimeoutMs: ANSWER_MS,
      maxBytes: MAX_BYTES,
      headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'svc' },
    })
    const text = await response.text()
    let data: unknown
    try {
      data = readJson(text)
    } catch {
      data = undefined /* a page: told by its status */
    }
    if (!response.ok && (data === undefined || response.status >= 500 || response.status === 429)) {
      const later = response.status >= 500 || response.status === 429
      throw new UpstreamFailure(provider, `${provider} answered a sign-in with ${response.status}`, {
        reason: response.status === 429 ? 'rate_limit' : later ? 'server_error' : 'invalid_request',
        retry: later ? 'later' : 'never',
      })
    }
    return data
  }
}

function describeProblem({ error, error_description: description }: v.InferOutput<typeof Problem>): string {
  return ` (${error})${description ? `: ${shortened(description)}` : ''}`
}
