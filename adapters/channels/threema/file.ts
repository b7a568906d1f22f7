import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { JsonObject } from 'svc/channels'
import type { ThreemaApi } from './api.ts'
import { openFile } from './box.ts'

export const MAX_FILE_BYTES = 20_000_000
const OVERHEAD_BYTES = 16
const Reference = v.object({
  blob: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  key: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i)),
})

/** The server keeps files for two weeks, or until the first app has read them. */
export async function* readFile(
  api: ThreemaApi,
  reference: JsonObject,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { blob, key } = v.parse(Reference, reference)
  const response = await api.download(blob, signal)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.chunks()) {
    size += chunk.length
    if (size > MAX_FILE_BYTES + OVERHEAD_BYTES) throw unreadable('it is too large')
    chunks.push(chunk)
  }
  const bytes = openFile(Uint8Array.from(Buffer.concat(chunks)), Uint8Array.from(Buffer.from(key, 'hex')))
  if (!bytes) throw unreadable('it is not the file that was sent')
  yield bytes
}

function unreadable(why: string): UpstreamFailure {
  return new UpstreamFailure('threema', `threema: the file cannot be read: ${why}`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
