import { UpstreamFailure } from 'svc/sdk'
import { estimateTokens } from 'svc/providers'
import type { Embeddings } from 'svc/providers'

const EMBEDDING_MODEL = 'ngram-256'
const MIN_DIMENSIONS = 16
const MAX_DIMENSIONS = 4096
/** Scripts that are written without blanks between words. */
const UNSPACED_SCRIPTS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u
/** The weight of a word grows with its length up to this. In characters. */
const MAX_WEIGHTED_LENGTH = 8

/**
 * Embeds without a network and without a model, by feature hashing: each word and each of its n-grams is hashed to a
 * dimension. Texts that share words or parts of words are near each other, in any language and despite typos; texts
 * that mean the same in other words are not. Deterministic; vectors have length 1, or 0 for a text without letters and
 * digits. `model` is `ngram-` and the number of dimensions.
 */
export async function embedLocally(
  { model, texts }: { readonly model: string; readonly texts: readonly string[] },
  signal: AbortSignal,
): Promise<Embeddings> {
  const size = Number(/^ngram-(\d{1,5})$/.exec(model)?.[1] ?? NaN)
  if (!(size >= MIN_DIMENSIONS && size <= MAX_DIMENSIONS))
    throw new UpstreamFailure(
      'builtin',
      `builtin embeds with ${EMBEDDING_MODEL}, or ngram- and any number of dimensions ` +
        `from ${MIN_DIMENSIONS} to ${MAX_DIMENSIONS}, not "${model}"`,
      { reason: 'not_found', retry: 'never' },
    )
  const vectors: Float32Array[] = []
  let input = 0
  for (const text of texts) {
    signal.throwIfAborted()
    vectors.push(vectorOf(text, size))
    input += estimateTokens(text)
    // Yields to the event loop between two texts.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  signal.throwIfAborted()
  return { vectors, usage: { input } }
}

function vectorOf(text: string, size: number): Float32Array {
  const counts = new Map<string, number>()
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    counts.set(word, (counts.get(word) ?? 0) + 1)
  const vector = new Float32Array(size)
  for (const [word, count] of counts) {
    const parts = partsOf(word)
    // A word weighs more the longer it is, and less with each repetition. Its parts share its weight.
    const weight =
      ((Math.min([...word].length, MAX_WEIGHTED_LENGTH) / MAX_WEIGHTED_LENGTH) * (1 + Math.log(count))) /
      Math.sqrt(parts.length)
    for (const part of parts) {
      const hash = fnv1a(part)
      const at = hash % size
      // Random signs keep parts that share a dimension from adding up.
      vector[at] = (vector[at] ?? 0) + (hash & 0x8000_0000 ? weight : -weight)
    }
  }
  let square = 0
  for (const value of vector) square += value * value
  const length = Math.sqrt(square)
  if (length > 0) for (let at = 0; at < size; at++) vector[at] = (vector[at] ?? 0) / length
  return vector
}

/** The word and its 3-grams to 5-grams, with marked ends; in unspaced scripts its characters and pairs. */
function partsOf(word: string): readonly string[] {
  const isUnspaced = UNSPACED_SCRIPTS.test(word)
  const letters = isUnspaced ? [...word] : ['<', ...word, '>']
  const parts = [word]
  for (let length = isUnspaced ? 1 : 3; length <= (isUnspaced ? 2 : 5); length++)
    for (let at = 0; at + length <= letters.length; at++)
      parts.push(`${length}${letters.slice(at, at + length).join('')}`)
  return parts
}

/** FNV-1a over UTF-16 code units with a final mix, so that similar inputs differ. Unsigned, 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c_9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
