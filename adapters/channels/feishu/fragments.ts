import { UpstreamFailure } from 'svc/sdk'
import { RecentMap } from 'svc/channels'
import type { Frame } from './frame.ts'

const MAX_MESSAGES = 100
const MAX_FRAGMENTS = 1000
const MAX_BYTES = 16_777_216

/** Joins events that were cut into several frames. */
export class Fragments {
  readonly #parts = new RecentMap<string, (Uint8Array | undefined)[]>(MAX_MESSAGES)

  /** The whole payload, when this frame completes it. */
  join({ headers, payload }: Frame): Uint8Array | undefined {
    const sum = Number(headers.get('sum') ?? 1)
    const seq = Number(headers.get('seq') ?? 0)
    if (sum === 1) return payload
    const id = headers.get('message_id') ?? ''
    const parts = this.#parts.get(id) ?? Array.from<Uint8Array | undefined>({ length: Math.min(sum, MAX_FRAGMENTS) })
    if (!Number.isInteger(sum) || sum !== parts.length || !(seq in parts)) throw unreadable()
    parts[seq] = payload
    this.#parts.set(id, parts)
    const known = parts.filter((part) => part !== undefined)
    if (known.reduce((bytes, part) => bytes + part.length, 0) > MAX_BYTES) throw unreadable()
    if (known.length < sum) return undefined
    this.#parts.delete(id)
    return Buffer.concat(known)
  }
}

function unreadable(): UpstreamFailure {
  return new UpstreamFailure('feishu', 'feishu sent an event in pieces that do not fit together', {
    reason: 'malformed',
    retry: 'later',
  })
}
