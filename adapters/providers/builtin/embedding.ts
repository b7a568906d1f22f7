import { UpstreamFailure } from 'svc/sdk'
import { estimateTokens } from 'svc/providers'
import type { Embeddings } from 'svc/providers'

export const EMBEDDING_MODEL = 'ngram-256'
const FEWEST = 16
const MOST = 4096
/** Scripts that put no blanks between words. */
const DENSE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
/** From here on a longer word says no more than this one. In characters. */
const TELLING = 8

/**
 * Vectors without a network and without a model: each word and each group of letters in it is hashed to a dimension.
 * Texts that share
 * words or parts of words are near each other, in any language and with slips of the pen; texts that mean the same
 * in other words are
 * not. Good for finding what was said before, not for understanding it. The same text always has the same vector, of
 * length 1 (a text
 * without letters and digits has the null vector). `model` is `ngram-` and the number of dimensions.
 */
export async function embedLocally(
  { model, texts }: { readonly model: string; readonly texts: readonly string[] },
  signal: AbortSignal,
): Promise<Embeddings> {
  const size = Number(/^ngram-(\d{1,5})$/.exec(model)?.[1] ?? NaN)
  if (!(size >= FEWEST && size <= MOST))
    throw new UpstreamFailure(
      'builtin',
      `builtin embeds with ${EMBEDDING_MODEL}, or ngram- and any number of dimensions from ${FEWEST} to ${MOST}, not "${model}"`,
      { reason: 'not_found', retry: 'never' },
    )
  const vectors: Float32Array[] = []
  let input = 0
  for (const text of texts) {
    signal.throwIfAborted()
    vectors.push(vectorOf(text, size))
    input += estimateTokens(text)
    // Lets everything else have its turn between two texts.
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
    // A word counts by how long it is, and less with each time it is said again; its parts share what it counts.
    const weight = ((Math.min([...word].length, TELLING) / TELLING) * (1 + Math.log(count))) / Math.sqrt(parts.length)
    for (const part of parts) {
      const hash = fnv1a(part)
      const at = hash % size
      // A sign of its own keeps parts that share a dimension from adding up.
      vector[at] = (vector[at] ?? 0) + (hash & 0x8000_0000 ? weight : -weight)
    }
  }
  let square = 0
  for (const value of vector) square += value * value
  const length = Math.sqrt(square)
  if (length > 0) for (let at = 0; at < size; at++) vector[at] = (vector[at] ?? 0) / length
  return vector
}

/**
 * The word itself and the groups of three to five letters in it, its ends marked; in dense scripts each sign and each
 * pair.
 */
function partsOf(word: string): readonly string[] {
  const dense = DENSE.test(word)
  const letters = dense ? [...word] : ['<', ...word, '>']
  const parts = [word]
  for (let length = dense ? 1 : 3; length <= (dense ? 2 : 5); length++)
    for (let at = 0; at + length <= letters.length; at++)
      parts.push(`${length}${letters.slice(at, at + length).join('')}`)
  return parts
}

/** FNV-1a over UTF-16 units, finished so that neighbours part. 32 bits, not negative. */
function fnv1a(text: string): number {
  let hash = 0x811c_9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
