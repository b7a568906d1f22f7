import { once } from 'node:events'
import type { Socket } from 'node:net'
import { UpstreamFailure } from 'svc/sdk'
import type { Connection } from 'svc/sdk'

const MAX_CHARS = 65_536

/**
 * What a server sends before a connection is encrypted, until it is complete. Throws when it ends before, or is too
 * long.
 */
export async function readUntil(
  connection: Connection,
  isComplete: (text: string) => boolean,
  { system, signal }: { readonly system: string; readonly signal: AbortSignal },
): Promise<string> {
  const socket = connection as Socket
  const failed = (message: string, retry: 'never' | 'later'): UpstreamFailure =>
    new UpstreamFailure(system, message, { reason: 'network', retry })
  let text = ''
  while (!isComplete(text)) {
    const chunk: unknown = socket.read()
    if (chunk instanceof Uint8Array) text += Buffer.from(chunk).toString('utf8')
    else if (socket.readableEnded || socket.destroyed) throw failed('the server closed the connection', 'later')
    else await Promise.race([once(socket, 'readable', { signal }), once(socket, 'end', { signal })])
    if (text.length > MAX_CHARS) throw failed('the server sent too much before the encryption', 'never')
  }
  return text
}
