import { stripVTControlCharacters } from 'node:util'
import { ConfigError } from '../config/problem.ts'
import { escapeControls } from '../log/text.ts'
import { exits, Failure } from './failure.ts'

/** Anything that was thrown as a failure with an exit code. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof ConfigError) {
    return new Failure(
      exits.config,
      `the configuration cannot be used:\n${error.problems.length === 1 ? '' : `(${error.problems.length} problems)\n`}${error.message}`,
      'correct it and try again; `svc config schema` lists every key',
      { cause: error },
    )
  }
  if (error instanceof Error && error.name === 'CLIError')
    return new Failure(exits.usage, stripVTControlCharacters(error.message), undefined, { cause: error })
  const message = error instanceof Error ? error.message : String(error)
  return new Failure(
    exits.failed,
    message,
    process.env['SVC_DEBUG'] ? (error instanceof Error ? error.stack : undefined) : undefined,
    { cause: error },
  )
}
export function renderFailure(failure: Failure, json: boolean): string {
  if (json)
    return JSON.stringify({
      error: {
        message: failure.message,
        exit: failure.exit,
        ...(failure.advice === undefined ? {} : { advice: failure.advice }),
      },
    })
  return `svc: ${escapeControls(failure.message, true)}${failure.advice === undefined ? '' : `\n  -> ${escapeControls(failure.advice, true)}`}`
}
