import { createPrivateKey } from 'node:crypto'
import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'

const SCOPE = 'https://www.googleapis.com/auth/chat.bot'
const HOUR_SECS = 3600

/** `token_uri` is not read: whoever writes the file would choose where what is signed is sent. */
const ServiceAccount = v.object({
  type: v.literal('service_account'),
  client_email: v.pipe(v.string(), v.minLength(1)),
  private_key: v.pipe(v.string(), v.includes('PRIVATE KEY-----')),
  private_key_id: v.optional(v.string()),
})
export type ServiceAccount = v.InferOutput<typeof ServiceAccount>

/** The service account in the content of its JSON file; `undefined` when there is none. */
export function readServiceAccount(text: string): ServiceAccount | undefined {
  try {
    const read = v.safeParse(ServiceAccount, readJson(text))
    return read.success ? read.output : undefined
  } catch {
    return undefined
  }
}

/** The form that is exchanged for an access token: https://developers.google.com/identity/protocols/oauth2/service-account */
export async function signGrant(account: ServiceAccount, tokenUrl: string, now: number): Promise<URLSearchParams> {
  // Loaded with the first connection: it slows down the start.
  const { SignJWT } = await import('jose')
  const { client_email: email, private_key: key, private_key_id: kid } = account
  const issuedAt = Math.floor(now / 1000)
  const assertion = new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid !== undefined && { kid }) })
    .setIssuer(email)
    .setAudience(tokenUrl)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + HOUR_SECS)
  try {
    return new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: await assertion.sign(createPrivateKey(key)),
    })
  } catch {
    // The cause may quote the key.
    throw new UpstreamFailure('google_chat', 'The private key of the service account is no RSA key in PEM format', {
      reason: 'auth',
      retry: 'never',
    })
  }
}
