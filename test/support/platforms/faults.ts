import type { ServerResponse } from 'node:http'
import { resetConnection } from './http.ts'
import type { PlatformAnswer } from './http.ts'
import type { PlatformFault, PlatformFile } from './platform.ts'

/** All that can go wrong with a message. */
export const allFaults: ReadonlySet<PlatformFault['kind']> = new Set([
  'rate_limit',
  'server_error',
  'reset',
  'lost_answer',
  'permanent',
  'auth',
])

/** Credentials that somebody takes back at the platform, and gives again. */
export class Revocation {
  isRevoked = false
  /** Requests that came with them meanwhile. */
  requests = 0

  /** Whether a request is refused for it. */
  refuses(): boolean {
    if (this.isRevoked) this.requests++
    return this.isRevoked
  }
}

/** How a platform says what went wrong. The connection is reset where it says nothing. */
export function answerFault(
  fault: PlatformFault,
  response: ServerResponse,
  answers: Readonly<Record<'server_error' | 'permanent' | 'auth', PlatformAnswer>> & {
    readonly rate_limit: (seconds: number | undefined) => PlatformAnswer
  },
): PlatformAnswer | undefined {
  if (fault.kind === 'rate_limit') return answers.rate_limit(fault.retryAfterSecs)
  if (fault.kind === 'reset' || fault.kind === 'lost_answer') return resetConnection(response)
  return answers[fault.kind]
}

export function fileKind(mime: string): PlatformFile['kind'] {
  const [type] = mime.split('/', 1)
  return type === 'image' || type === 'audio' || type === 'video' ? type : 'file'
}

export async function fileOf(file: File): Promise<PlatformFile> {
  return { kind: fileKind(file.type), name: file.name, mime: file.type, bytes: await file.bytes() }
}
