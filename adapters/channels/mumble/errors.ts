import { shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { Refused } from './wire.ts'

type Meaning = readonly [words: string, reason: UpstreamReason, retry: 'never' | 'later']

/** Why a server rejects a user. */
const REJECTIONS: Readonly<Record<number, Meaning>> = {
  1: ['the version of the protocol does not fit', 'invalid_request', 'never'],
  2: ['the name of the bot is not allowed', 'invalid_request', 'never'],
  3: ['the password or the certificate of the user is wrong', 'auth', 'never'],
  4: ['the password of the server is wrong', 'auth', 'never'],
  5: ['the name of the bot is in use', 'invalid_request', 'later'],
  6: ['the server is full', 'overloaded', 'later'],
  7: ['the server asks for a certificate', 'auth', 'never'],
  8: ['the server cannot check users now', 'server_error', 'later'],
  9: ['the server takes no new users now', 'overloaded', 'later'],
}
/** What servers refuse in other words than a reason. */
const DENIALS: Readonly<Record<number, string>> = {
  1: 'the bot may not do this in this channel',
  4: 'the message is longer than the server allows',
  7: 'the server asks for a certificate',
  9: 'the channel is full',
}

export function rejection({ type, reason }: Refused, server: string): UpstreamFailure {
  const [words, ...meaning] = REJECTIONS[type] ?? (['the bot was rejected', 'server_error', 'later'] as const)
  return mumbleFailure(`${server}: ${words}${reason && ` (${shortened(reason)})`}`, ...meaning)
}

/** The refusal of something that the bot did, such as a message. */
export function denial({ type, reason }: Refused, server: string): UpstreamFailure {
  const words = DENIALS[type] ?? 'the server refused it'
  return mumbleFailure(`${server}: ${words}${reason && ` (${shortened(reason)})`}`, 'invalid_request', 'never')
}

export function mumbleFailure(message: string, reason: UpstreamReason, retry: 'never' | 'later'): UpstreamFailure {
  return new UpstreamFailure('mumble', message, { reason, retry })
}
