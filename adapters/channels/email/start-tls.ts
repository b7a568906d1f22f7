import { UpstreamFailure } from 'svc/sdk'
import type { Connection } from 'svc/sdk'
import { readUntil } from 'svc/channels'
import type { Link } from './config.ts'

const GREETING = /^\* (?:OK|PREAUTH|BYE)\b[^\r\n]*\r\n/
const ANSWER = /(?:^|\r\n)svc1 (\S+)[^\r\n]*\r\n/

/**
 * Asks an IMAP server to encrypt the connection, and leaves the encryption to the caller. Nothing else is sent before
 * it, and nothing that came before it counts afterwards.
 */
export async function requestTls(link: Link, connection: Connection, server: string): Promise<void> {
  const within = { system: 'email', signal: AbortSignal.any([link.signal, AbortSignal.timeout(30_000)]) }
  try {
    const greeting = await readUntil(connection, (text) => GREETING.test(text), within)
    // A connection that is signed in already can no longer be encrypted.
    if (!greeting.startsWith('* OK')) throw refused(server, 'does not begin with a sign-in')
    connection.write('svc1 STARTTLS\r\n')
    const answer = await readUntil(connection, (text) => ANSWER.test(text), within)
    const [all = '', status = ''] = ANSWER.exec(answer) ?? []
    if (status.toUpperCase() !== 'OK') throw refused(server, 'does not offer STARTTLS')
    if (!answer.endsWith(all)) throw refused(server, 'sent more than its answer before the encryption')
  } catch (error) {
    connection.destroy()
    throw error
  }
}

function refused(server: string, what: string): UpstreamFailure {
  return new UpstreamFailure('email', `${server} ${what}: nothing is sent to it unencrypted`, {
    reason: 'network',
    retry: 'never',
  })
}
