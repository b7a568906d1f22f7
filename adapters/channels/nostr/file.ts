import { createDecipheriv } from 'node:crypto'
import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient } from 'svc/channels'
import type { ChannelLink, JsonObject } from 'svc/channels'
import type { NostrConfig } from './config.ts'

export const MAX_FILE_BYTES = 25_000_000
/** GCM puts it behind the content. */
const TAG_BYTES = 16
const Reference = v.object({ url: v.string(), key: v.string(), nonce: v.string() })

/** Reads a file that somebody encrypted for this chat. The address is that person's choice: no credentials go there. */
export async function* readFile(
  link: ChannelLink<NostrConfig>,
  reference: JsonObject,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { url, key, nonce } = v.parse(Reference, reference)
  const client = new ApiClient(link, { system: 'nostr' })
  const response = await client.open(url, { signal, headers: { accept: '*/*' }, streamIdleMs: 30_000 })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.chunks()) {
    size += chunk.length
    if (size > MAX_FILE_BYTES + TAG_BYTES) throw unreadable('it is too large')
    chunks.push(chunk)
  }
  yield decrypted(Buffer.concat(chunks), key, nonce)
}

function decrypted(bytes: Buffer, key: string, nonce: string): Uint8Array {
  if (bytes.length < TAG_BYTES) throw unreadable('it is too short')
  const algorithm = key.length === 32 ? 'aes-128-gcm' : 'aes-256-gcm'
  const decipher = createDecipheriv(algorithm, Buffer.from(key, 'hex'), Buffer.from(nonce, 'hex'))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch {
    throw unreadable('it is not the file that was sent')
  }
}

function unreadable(why: string): UpstreamFailure {
  return new UpstreamFailure('nostr', `nostr: the file cannot be read: ${why}`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
