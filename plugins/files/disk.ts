import { Refusal } from 'svc/sdk'

export const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.some((code) => code === error.code)

/** What to tell when the disk takes no more, which is nobody's mistake; `undefined` for any other failure. */
export function diskRefusal(error: unknown): Refusal | undefined {
  if (!hasCode(error, 'ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG', 'EIO', 'EMFILE', 'ENFILE')) return undefined
  return new Refusal('service_unavailable', 'The workspace cannot be written to: the disk is full or fails', {
    cause: error,
    retryAfterSecs: 5,
  })
}
