import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { SignJWT } from 'jose'
import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const HOUR_SECS = 3600
const MAX_FILE_CHARS = 65_536

const ServiceAccount = v.object({
  type: v.literal('service_account'),
  client_email: v.string(),
  private_key: v.string(),
  private_key_id: v.optional(v.string()),
  token_uri: v.optional(v.pipe(v.string(), v.url()), 'https://oauth2.googleapis.com/token'),
  project_id: v.optional(v.string()),
})
/** What `gcloud auth application-default login` leaves behind. */
const User = v.object({
  type: v.literal('authorized_user'),
  client_id: v.string(),
  client_secret: v.string(),
  refresh_token: v.string(),
  token_uri: v.optional(v.pipe(v.string(), v.url()), 'https://oauth2.googleapis.com/token'),
  quota_project_id: v.optional(v.string()),
})
const File = v.variant('type', [ServiceAccount, User])

export interface Credentials {
  readonly projectId: string | undefined
  readonly quotaProject: string | undefined
  readonly tokenUri: string
  /** The form that is exchanged for a token. `now` in seconds. */
  grant(now: number): Promise<URLSearchParams>
}

type Refuse = (why: string) => UpstreamFailure

/**
 * The credentials a key stands for: its JSON, or the absolute path of a file with it. `undefined` for an API key.
 * Throws `UpstreamFailure` (auth) when they cannot be read; the message never contains what is in the file.
 */
export async function readCredentials(name: string, key: string): Promise<Credentials | undefined> {
  const refuse: Refuse = (why) =>
    new UpstreamFailure(name, `${name} cannot use its credentials: ${why}`, { reason: 'auth', retry: 'never' })
  const given = key.trim()
  const isJson = given.startsWith('{')
  if (!isJson && !/^(?:\/|[A-Za-z]:[\\/])/.test(given)) return undefined
  const file = parseFile(isJson ? given : await readText(given, refuse), refuse)
  return file.type === 'service_account' ? serviceAccountCredentials(file, refuse) : userCredentials(file)
}

async function readText(path: string, refuse: Refuse): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw refuse(
      `the file cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : 'error'})`,
    )
  }
}

function parseFile(text: string, refuse: Refuse): v.InferOutput<typeof File> {
  if (text.length > MAX_FILE_CHARS) throw refuse('the file is too long')
  let data: unknown
  try {
    data = readJson(text)
  } catch {
    throw refuse('they are not JSON')
  }
  const read = v.safeParse(File, data)
  if (!read.success) throw refuse('expected the JSON of a service account, or of an application-default login')
  return read.output
}

function serviceAccountCredentials(file: v.InferOutput<typeof ServiceAccount>, refuse: Refuse): Credentials {
  return {
    projectId: file.project_id,
    quotaProject: undefined,
    tokenUri: file.token_uri,
    grant: async (now) =>
      new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: await signAssertion(file, now, refuse),
      }),
  }
}

function userCredentials(file: v.InferOutput<typeof User>): Credentials {
  return {
    projectId: file.quota_project_id,
    quotaProject: file.quota_project_id,
    tokenUri: file.token_uri,
    grant: async () =>
      new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: file.client_id,
        client_secret: file.client_secret,
        refresh_token: file.refresh_token,
      }),
  }
}

/** Source: https://developers.google.com/identity/protocols/oauth2/service-account#httprest (RFC 7523). */
async function signAssertion(
  account: v.InferOutput<typeof ServiceAccount>,
  now: number,
  refuse: Refuse,
): Promise<string> {
  const { client_email: email, private_key: key, private_key_id: kid, token_uri: audience } = account
  try {
    return await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid !== undefined && { kid }) })
      .setIssuer(email)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + HOUR_SECS)
      .sign(createPrivateKey(key))
  } catch {
    throw refuse('its private key is not an RSA key in PEM format')
  }
}
