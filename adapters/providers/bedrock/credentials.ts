import { UpstreamFailure } from 'svc/sdk'
import type { Config } from './index.ts'

/** A key that is sent as it is, or one that signs requests. */
export type Credentials =
  | { readonly bearer: string }
  | { readonly id: string; readonly secret: string; readonly session?: string | undefined }

/**
 * The credentials a key stands for. `undefined` when there is no key, as when it may not be sent to this address: then
 * nothing is signed.
 */
export function readCredentials(
  key: string | undefined,
  { secret_access_key: secret, session_token: session }: Config,
  name: string,
): Credentials | undefined {
  if (key === undefined) return undefined
  const [, id, ownSecret, token] = /^(A[A-Z0-9]{15,127}):([^:]+)(?::(.+))?$/.exec(key) ?? []
  if (id !== undefined && ownSecret !== undefined) return { id, secret: ownSecret, session: token }
  if (!/^(?:AKIA|ASIA)[A-Z0-9]{12,124}$/.test(key)) return { bearer: key }
  // Long-term keys have no session: a token in the environment belongs to another key.
  if (secret !== undefined) return { id: key, secret, session: key.startsWith('ASIA') ? session : undefined }
  throw new UpstreamFailure(
    name,
    `The key of ${name} is an access key id without its secret: ` +
      `set AWS_SECRET_ACCESS_KEY or [providers.${name}] secret_access_key`,
    { reason: 'auth', retry: 'never' },
  )
}
