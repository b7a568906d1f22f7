import { longestSeconds } from './prices.ts'

/** Formats whose headers and frames tell how long they are. */
const TIMED = /^audio\/(?:(?:x-)?wav|vnd\.wave|wave|mpeg|(?:x-)?flac)$|^(?:audio|application)\/ogg/
/** Sound of the best quality has fewer bytes in a second, so what claims to have more is not believed. */
const MAX_BYTES_PER_SECOND = 2_000_000
/** Vendors round up. */
const MARGIN_SECONDS = 1

/**
 * The seconds that a recording takes at most: what it says of itself where that can be, else as many as its bytes
 * allow. A vendor that counts the seconds is believed afterwards, not this.
 */
export async function secondsOf(audio: Uint8Array, mime: string): Promise<number> {
  const longest = longestSeconds(audio.byteLength)
  if (!TIMED.test(mime)) return longest
  const { parseBuffer } = await import('music-metadata')
  let duration: number | undefined
  try {
    const { format } = await parseBuffer(
      audio,
      { mimeType: mime.replace(/;.*/, ''), size: audio.byteLength },
      { duration: true, skipCovers: true, skipPostHeaders: true },
    )
    duration = format.duration
  } catch {
    /* It is damaged: the vendor decides what it is. */
  }
  const isPlausible = duration !== undefined && duration > 0 && audio.byteLength / duration <= MAX_BYTES_PER_SECOND
  return isPlausible && duration !== undefined ? Math.min(longest, Math.ceil(duration) + MARGIN_SECONDS) : longest
}
