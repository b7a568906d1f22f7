import { Refusal } from 'svc/sdk'
import { serverFailed } from '../errors.ts'

/** The failure of a server as the answer to the request that needed it. */
export async function explained<T>(work: Promise<T>, advice?: string): Promise<T> {
  try {
    return await work
  } catch (error) {
    // Such as a program that is not on this machine, or an address that is closed.
    const refusal = error instanceof Error ? refusalBehind(error.cause) : undefined
    if (refusal) {
      const { code, message } = refusal
      throw code === 'invalid_request' ? new Refusal('conflict', message, { cause: error }) : refusal
    }
    if (error instanceof Error && error.name === 'UpstreamFailure')
      throw new Refusal(serverFailed, withAdvice(error.message, advice), { cause: error })
    throw error
  }
}

function withAdvice(message: string, advice: string | undefined): string {
  if (advice === undefined) return message
  // What the program wrote stands in lines of its own.
  return `${message}${message.includes('\n') ? '\n' : '. '}${advice}`
}

/** The libraries wrap what refused a request. */
function refusalBehind(cause: unknown): Refusal | undefined {
  if (cause instanceof Refusal) return cause
  return cause instanceof Error ? refusalBehind(cause.cause) : undefined
}
