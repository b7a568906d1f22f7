import { messageOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { isObject } from 'svc/sdk'
import type { AccountState } from './status.ts'

/** Why a connection ended or did not open, and what comes next. */
export interface Ending {
  /** `undefined`: another attempt follows. */
  readonly final: Extract<AccountState, 'misconfigured' | 'needs_login' | 'missing_dependency'> | undefined
  readonly reason: string
  readonly retryAfterSecs: number | undefined
  /** The adapter failed in a way that it does not foresee. */
  readonly isDefect: boolean
}

export const retried = (reason: string, retryAfterSecs?: number): Ending => ({
  final: undefined,
  reason,
  retryAfterSecs,
  isDefect: false,
})
export const ended = (final: NonNullable<Ending['final']>, reason: string): Ending => ({
  final,
  reason,
  retryAfterSecs: undefined,
  isDefect: false,
})

/** What an error of an adapter means for its connection. `canSignIn`: this account signs in with a QR code. */
export function classifyError(error: unknown, canSignIn: boolean): Ending {
  if (error instanceof UpstreamFailure) {
    if (error.reason === 'auth') return ended(canSignIn ? 'needs_login' : 'misconfigured', error.message)
    // A page of a proxy in place of an answer passes, and says nothing of the configuration.
    return error.retry === 'never' && error.reason !== 'malformed'
      ? ended('misconfigured', error.message)
      : retried(error.message, error.retryAfterSecs)
  }
  if (error instanceof Refusal) {
    const isFinal = error.code === 'forbidden' || error.code === 'invalid_request'
    return isFinal ? ended('misconfigured', error.message) : retried(error.message, error.retryAfterSecs)
  }
  if (error instanceof MissingProgram) return ended('missing_dependency', error.message)
  const missing = describeMissingModule(error)
  if (missing !== undefined) return ended('missing_dependency', missing)
  const message = messageOf(error)
  return { ...retried(`the adapter failed: ${message}`), isDefect: true }
}

/** The program that an adapter works through is not on this machine. */
export class MissingProgram extends Error {
  constructor(program: string) {
    super(`the program "${program}" is not installed, or is not in a folder of the system: name it by its path`)
  }
}

/** What to install when an import did not find its module. Says nothing of the paths of this machine. */
export function describeMissingModule(error: unknown): string | undefined {
  if (!isObject(error) && !(error instanceof Error)) return undefined
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  const specifier = /(?:package|module) '([^']+)'/i.exec(String(message))?.[1] ?? ''
  const name = /^(@[\w.-]+\/[\w.-]+|[\w-][\w.-]*)/.exec(specifier)?.[1]
  if (name === undefined) return 'a file of the adapter is missing: install its plugin again'
  return `the package ${name} is not installed: run "npm install ${name}" where svc is installed`
}
