import { stripVTControlCharacters } from 'node:util'
import { ConfigError, printProblem } from '../config/problem.ts'
import { escapeControls } from '../log/text.ts'
import { exits, Failure } from './failure.ts'
import { commandLine } from '../process/command-name.ts'
import { codeOf } from '../storage/failure.ts'
import { messageOf } from '../errors/message.ts'

/** Anything that was thrown as a failure with an exit code. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof ConfigError) {
    // A flag of this command line, not the configuration.
    if (error.problems.every(({ file, name }) => file === 'flags' && name !== undefined))
      return new Failure(
        exits.usage,
        error.problems.map((problem) => printProblem(problem).replace('flags: ', '')).join('\n'),
        undefined,
        { cause: error },
      )
    const count = error.problems.length === 1 ? '' : `(${error.problems.length} problems)\n`
    return new Failure(
      exits.config,
      `the configuration cannot be used:\n${count}${error.message}`,
      `correct it and try again; ${commandLine('config schema')} lists every key`,
      { cause: error },
    )
  }
  if (error instanceof Error && error.name === 'CLIError')
    return new Failure(exits.usage, stripVTControlCharacters(error.message), undefined, { cause: error })
  const denied = explainDenied(error)
  if (denied) return denied
  const message = messageOf(error)
  return new Failure(
    exits.failed,
    message,
    process.env['SVC_DEBUG'] ? (error instanceof Error ? error.stack : undefined) : undefined,
    { cause: error },
  )
}
/** A file that this user may not use, in whatever command. */
function explainDenied(error: unknown): Failure | undefined {
  if (!(error instanceof Error && 'path' in error && ['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error))))
    return undefined
  return new Failure(
    exits.refused,
    `this user may not use ${String(error.path)} (${codeOf(error)})`,
    'run this as the user of the daemon, correct the rights of the file, or name another home with --home',
    { cause: error },
  )
}
export function renderFailure(failure: Failure, json: boolean): string {
  const { message, advice } = failure
  if (json)
    return JSON.stringify({
      error: {
        message,
        exit: failure.exit,
        ...(advice === undefined ? {} : { advice }),
      },
    })
  return `svc: ${escapeControls(message, true)}${advice === undefined ? '' : `\n  -> ${escapeControls(advice, true)}`}`
}
