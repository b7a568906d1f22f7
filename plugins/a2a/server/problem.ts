import { Refusal } from 'svc/sdk'
import type { ErrorCode } from 'svc/sdk'

/** The errors of the protocol, with the code that they have in answers of the REST routes. */
const CODES = {
  TaskNotFound: 'task_not_found',
  TaskNotCancelable: 'conflict',
  PushNotificationNotSupported: 'conflict',
  UnsupportedOperation: 'conflict',
  ContentTypeNotSupported: 'invalid_request',
  RequestMalformed: 'invalid_request',
  VersionNotSupported: 'invalid_request',
} as const satisfies Readonly<Record<string, ErrorCode>>
export type ProblemName = keyof typeof CODES

/** A refusal that the protocol has a name for. */
export class ProtocolProblem extends Refusal {
  readonly problem: ProblemName
  constructor(problem: ProblemName, message: string) {
    super(CODES[problem], message)
    this.problem = problem
  }
}
