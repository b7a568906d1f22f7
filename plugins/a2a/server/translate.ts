import {
  ContentTypeNotSupportedError,
  JsonRpcTransportError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} from '@a2a-js/sdk/errors'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { ProtocolProblem } from './problem.ts'
import type { ProblemName } from './problem.ts'

const ERRORS = {
  TaskNotFound: TaskNotFoundError,
  TaskNotCancelable: TaskNotCancelableError,
  PushNotificationNotSupported: PushNotificationNotSupportedError,
  UnsupportedOperation: UnsupportedOperationError,
  ContentTypeNotSupported: ContentTypeNotSupportedError,
  RequestMalformed: RequestMalformedError,
  VersionNotSupported: VersionNotSupportedError,
} as const satisfies Readonly<Record<ProblemName, unknown>>

/** What the caller can mend by another request. */
const MENDABLE: ReadonlySet<string> = new Set(['invalid_request', 'payload_too_large', 'agent_not_found'])
/** Of JSON-RPC: the first code that a server may give a meaning. */
const SERVER_ERROR = -32_000
const INTERNAL_ERROR = -32_603

/** The error that the protocol has for a failure. `defect`: told of what is the fault of this code. */
export function translate(error: unknown, defect: (error: unknown) => void): Error {
  if (error instanceof ProtocolProblem) return new ERRORS[error.problem](error.message)
  if (error instanceof Refusal && MENDABLE.has(error.code)) return new RequestMalformedError(error.message)
  if (error instanceof Refusal) {
    const { retryAfterSecs: secs } = error
    return rpcError(SERVER_ERROR, secs === undefined ? error.message : `${error.message} (try again in ${secs} s)`)
  }
  if (error instanceof UpstreamFailure) return rpcError(SERVER_ERROR, error.message)
  defect(error)
  return rpcError(INTERNAL_ERROR, 'Internal error')
}
export function rpcError(code: number, message: string): JsonRpcTransportError {
  return new JsonRpcTransportError({ jsonrpc: '2.0', id: null, error: { code, message } })
}
