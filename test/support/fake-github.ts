import { startVendor } from './vendor-server.ts'
import type { VendorServer } from './vendor-server.ts'

const CLIENT = 'Iv1.b507a08c87ecfe98'
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export interface FakeGithub extends VendorServer {
  /** What the person does with the code that was given out last. */
  decide(what: 'authorize' | 'deny' | 'forget'): void
  /** The token that is given out after `authorize`. */
  readonly token: string
  readonly exchanges: () => number
}

/**
 * GitHub's device flow and its token endpoint for Copilot. Problems of the flow come with 200, as GitHub sends them;
 * who asks more often than every `interval` seconds is told to slow down, which adds five. Source:
 * https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow
 */
export async function startFakeGithub({
  interval = 0,
  expiresIn = 900,
  chat,
}: { readonly interval?: number; readonly expiresIn?: number; readonly chat?: string } = {}): Promise<FakeGithub> {
  const token = 'ghu_16C7e42F292c6912E7710c838347Ae178B4a'
  let decided: 'authorize' | 'deny' | 'forget' | undefined
  let deviceCode = ''
  let wait = interval
  let last = 0
  let exchanges = 0
  const server = await startVendor((call, answer) => {
    const { pathname } = call.url
    if (pathname === '/copilot_internal/v2/token') {
      exchanges++
      if (call.headers.authorization !== `token ${token}`) return answer.json(401, { message: 'Bad credentials' })
      return answer.json(200, {
        token: 'tid=1;exp=2;sku=free',
        expires_at: Math.floor(Date.now() / 1000) + 1800,
        refresh_in: 1500,
        endpoints: { api: chat ?? server.origin },
      })
    }
    if (call.method !== 'POST' || call.headers.accept !== 'application/json')
      return answer.text(404, 'Not Found', 'text/html')
    const form = new URLSearchParams(call.text)
    if (form.get('client_id') !== CLIENT)
      return answer.json(200, {
        error: 'incorrect_client_credentials',
        error_description: 'The client_id passed is incorrect.',
      })
    if (pathname === '/login/device/code') {
      deviceCode = `3584d83530557fdd1f46af8289938c8ef79f9dc${call.url.port}`
      decided = undefined
      wait = interval
      last = performance.now()
      return answer.json(200, {
        device_code: deviceCode,
        user_code: 'WDJB-MJHT',
        verification_uri: 'https://github.com/login/device',
        expires_in: expiresIn,
        interval,
      })
    }
    if (pathname !== '/login/oauth/access_token') return answer.text(404, 'Not Found', 'text/html')
    if (form.get('grant_type') !== GRANT) return answer.json(200, { error: 'unsupported_grant_type' })
    if (form.get('device_code') !== deviceCode)
      return answer.json(200, {
        error: 'incorrect_device_code',
        error_description: 'The device_code provided is not valid.',
      })
    const early = performance.now() - last < wait * 1000
    last = performance.now()
    if (early) {
      wait += 5
      return answer.json(200, {
        error: 'slow_down',
        error_description: 'Too many requests have been made in the same timeframe.',
        interval: wait,
      })
    }
    if (decided === 'forget')
      return answer.json(200, { error: 'expired_token', error_description: "This 'device_code' has expired." })
    if (decided === 'deny')
      return answer.json(200, { error: 'access_denied', error_description: 'The authorization request was denied.' })
    if (decided !== 'authorize')
      return answer.json(200, {
        error: 'authorization_pending',
        error_description: 'The authorization request is still pending.',
      })
    // A code is good for one token.
    deviceCode = ''
    answer.json(200, { access_token: token, token_type: 'bearer', scope: 'read:user' })
  })
  return Object.assign(server, {
    token,
    decide: (what: 'authorize' | 'deny' | 'forget') => {
      decided = what
    },
    exchanges: () => exchanges,
  })
}
