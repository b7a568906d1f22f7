import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch, UpstreamReason } from 'svc/sdk'

export interface ImageLimits {
  readonly signal: AbortSignal
  readonly max_image_bytes: number
  readonly image_timeout_secs: number
}
/** What a picture that is too slow or too large meets. */
const keys: Readonly<Partial<Record<UpstreamReason, keyof ImageLimits>>> = {
  timeout: 'image_timeout_secs',
  malformed: 'max_image_bytes',
}

/**
 * Fetches the picture at an https address. Throws `Refusal` when the address is not allowed, `UpstreamFailure` when the
 * fetch fails.
 */
export async function fetchImage(fetch: Fetch, url: URL, limits: ImageLimits): Promise<Uint8Array> {
  try {
    const answer = await fetch(url, {
      signal: limits.signal,
      totalTimeoutMs: limits.image_timeout_secs * 1000,
      maxBytes: limits.max_image_bytes,
      check(next) {
        if (next.protocol !== 'https:') throw new Refusal('forbidden', 'it leads to an address that is not https')
      },
    })
    if (!answer.ok)
      throw new UpstreamFailure(url.hostname, `it answered ${answer.status}`, { reason: 'not_found', retry: 'never' })
    return await answer.bytes()
  } catch (error) {
    const key = error instanceof UpstreamFailure ? keys[error.reason] : undefined
    if (!(error instanceof UpstreamFailure) || key === undefined) throw error
    throw new UpstreamFailure(error.system, `${error.message} (plugins.openai-api.${key})`, {
      reason: error.reason,
      retry: error.retry,
      cause: error,
    })
  }
}
