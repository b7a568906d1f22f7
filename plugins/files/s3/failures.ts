import type { UpstreamFailure } from 'svc/sdk'

export interface Place {
  readonly bucket: string
  /** Host and port of the endpoint. */
  readonly host: string
}

/** The code of an error in XML; empty when there is none. */
export function readCode(text: string): string {
  return /<Code>([A-Za-z0-9.]{1,64})<\/Code>/.exec(text)?.[1] ?? ''
}

/** Whether the same request may work after a pause. */
export function isBusy(status: number, code: string): boolean {
  if (code === 'RequestTimeout' || code === 'OperationAborted') return true
  return status === 408 || status === 429 || (status >= 500 && status !== 501)
}

const ADVICE: Readonly<Record<string, string>> = {
  NoSuchBucket: 'there is no such bucket: create it, or check bucket, endpoint and path_style',
  InvalidAccessKeyId: 'the server does not know the access key: check access_key_id',
  SignatureDoesNotMatch: 'the secret is not that of the access key: check secret_access_key',
  InvalidToken: 'the session token is not valid: check the variable that session_token_env names',
  ExpiredToken: 'the session token has expired: restart with a new one',
  RequestTimeTooSkewed: 'the clock of this machine differs from that of the server: set it',
  AuthorizationHeaderMalformed: 'the bucket is in another region: check region',
  PermanentRedirect: 'the bucket is elsewhere: check region and endpoint',
  QuotaExceeded: 'it is full: make room, or raise its quota',
  XMinioStorageFull: 'it is full: make room on the server',
}
const BY_STATUS: Readonly<Record<number, string>> = {
  301: 'the bucket is elsewhere: check region and endpoint',
  403: 'the access key may not do this: permit s3:GetObject, s3:PutObject and s3:DeleteObject on its objects, and s3:ListBucket',
  404: 'there is no such bucket: create it, or check bucket, endpoint and path_style',
  429: 'the server is too busy: try again',
  503: 'the server is too busy: try again',
}

/** Of what accepts a content and does not say what it has, such as the sign-in page of a network. */
const FOREIGN = 'no S3 server is there: check endpoint'

export interface FailedAnswer {
  readonly method: string
  readonly status: number
  readonly code: string
  readonly text: string
  readonly header: (name: string) => string | undefined
}

/** What went wrong and what to do about it. */
export function explain({ bucket, host }: Place, answer: FailedAnswer): string {
  const { method, status, code } = answer
  const isForeign = status < 300
  const advice = isForeign ? FOREIGN : (ADVICE[code] ?? BY_STATUS[status] ?? 'see the log of that server')
  const said = isForeign ? `${status} without an ETag` : code === '' ? String(status) : `${status} ${code}`
  return `The bucket "${bucket}" at ${host} (plugins.files.s3) answered ${method} with ${said}: ${advice}${facts(answer)}`
}

/** What the answer says of the region of the bucket or of the time. */
function facts({ code, header, text }: FailedAnswer): string {
  const region = header('x-amz-bucket-region') ?? /<Region>([a-z0-9-]{1,64})<\/Region>/.exec(text)?.[1]
  if (MOVED.has(code) && region !== undefined && /^[a-z0-9-]{1,64}$/.test(region))
    return ` (the bucket is in ${region})`
  const secs = code === 'RequestTimeTooSkewed' ? aheadOf(header('date')) : undefined
  return secs === undefined ? '' : ` (this machine is ${describeAhead(secs)} it)`
}
/** Seconds that this machine is ahead of a `Date` header. */
export function aheadOf(date: string | undefined): number | undefined {
  const theirs = Date.parse(date ?? '')
  return Number.isNaN(theirs) ? undefined : Math.round((Date.now() - theirs) / 1000)
}
export const describeAhead = (secs: number): string => `${Math.abs(secs)} s ${secs > 0 ? 'ahead of' : 'behind'}`
const MOVED: ReadonlySet<string> = new Set([
  'AuthorizationHeaderMalformed',
  'PermanentRedirect',
  'IllegalLocationConstraintException',
])

export function unreachable({ bucket, host }: Place, failure: UpstreamFailure, timeoutMs: number): string {
  const words: Partial<Record<UpstreamFailure['reason'], string>> = {
    timeout: `does not answer within ${timeoutMs} ms`,
    malformed: `sends what is no right answer (${failure.message})`,
  }
  const what = words[failure.reason] ?? `does not answer (${failure.message})`
  return `The bucket "${bucket}" at ${host} (plugins.files.s3) ${what}: check endpoint and the network, or try again`
}
