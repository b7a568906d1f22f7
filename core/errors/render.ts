import { rowOf } from './codes.ts'
import type { BodyFormat } from './codes.ts'
import { Refusal, UpstreamFailure } from './error.ts'
import type { ErrorCode } from './error.ts'

/** What an error answer says, before it is put into a body format. */
export interface Problem {
  /** The HTTP status. */
  readonly status: number
  /** What clients compare. */
  readonly code: ErrorCode
  /** One sentence for people. */
  readonly message: string
  /** Facts beside the message; empty when there are none. */
  readonly details: Readonly<Record<string, unknown>>
  /** The id of the request, which is in the log too. */
  readonly requestId: string
  /** That of the error's definition; the table in `codes.ts` has it for all others. */
  readonly format?: BodyFormat
}

/** How a failure is treated apart from what the caller reads. */
export type Kind = 'refusal' | 'upstream' | 'defect'
export interface Outcome {
  readonly kind: Kind
  readonly problem: Problem
  readonly retryAfterSecs: number | undefined
}

/**
 * A `Refusal` of another copy of the class (a plugin that bundled its own) still counts: recognised by name and code.
 */
function isRefusal(error: unknown): error is Refusal {
  return (
    error instanceof Refusal ||
    (error instanceof Error && error.name === 'Refusal' && 'code' in error && typeof error.code === 'string')
  )
}
function isUpstream(error: unknown): error is UpstreamFailure {
  return (
    error instanceof UpstreamFailure || (error instanceof Error && error.name === 'UpstreamFailure' && 'retry' in error)
  )
}

/** What the caller may know of a failure. A defect gives a fixed text: never a stack, a path or SQL. */
export function outcomeOf(error: unknown, requestId: string): Outcome {
  if (isRefusal(error)) {
    const { status, format } = rowOf(error.definition ?? error.code)
    const problem = {
      status,
      format,
      code: error.code,
      message: error.message,
      details: error.details ?? {},
      requestId,
    }
    return {
      kind: 'refusal',
      problem,
      retryAfterSecs: error.retryAfterSecs ?? (error.code === 'rate_limit' ? 60 : undefined),
    }
  }
  if (isUpstream(error)) {
    const later = error.retry === 'later'
    const code = later ? 'service_unavailable' : 'internal_error'
    const problem = { status: later ? 503 : 500, code, message: error.message, details: {}, requestId } as const
    return { kind: 'upstream', problem, retryAfterSecs: error.retryAfterSecs }
  }
  return {
    kind: 'defect',
    retryAfterSecs: undefined,
    problem: { status: 500, code: 'internal_error', message: 'Internal server error', details: {}, requestId },
  }
}

/** The body of an error answer in the format its code asks for. */
export function errorBody(problem: Problem): unknown {
  if ((problem.format ?? rowOf(problem.code).format) === 'flat') return { error: problem.message }
  return {
    error: { code: problem.code, message: problem.message, details: problem.details, request_id: problem.requestId },
  }
}
