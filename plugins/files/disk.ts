import { Refusal } from 'svc/sdk'

export const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.some((code) => code === error.code)

/** For what is not there; throws anything else. */
export function whenMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
}

/** The refusal for a disk that is full or fails; `undefined` for any other failure. */
export function diskRefusal(error: unknown): Refusal | undefined {
  if (!hasCode(error, 'ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG', 'EIO', 'EMFILE', 'ENFILE')) return undefined
  return new Refusal('service_unavailable', 'The workspace cannot be written to: the disk is full or fails', {
    cause: error,
    retryAfterSecs: 5,
  })
}

/**
 * Why a file or folder cannot be read; `undefined` for any other failure. A program of the agent may have taken the
 * permission away.
 */
export function accessProblem(error: unknown): string | undefined {
  if (hasCode(error, 'EACCES', 'EPERM')) return 'permission denied'
  return hasCode(error, 'EIO') ? 'the disk fails' : undefined
}
/** The refusal for a file or folder that cannot be read; `undefined` for any other failure. */
export function accessRefusal(name: string, error: unknown): Refusal | undefined {
  const problem = accessProblem(error)
  return problem === undefined
    ? undefined
    : new Refusal('forbidden', `"${name}" cannot be read: ${problem}`, { cause: error })
}
