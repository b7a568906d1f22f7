import type { ByteStream } from 'svc/sdk'

/** How long an answer may take to go out as a whole, with one write instead of four. */
const MOMENT_MS = 20
const MAX_WHOLE_BYTES = 65_536
const LATE = Symbol('late')

/** The stream as bytes if it ends in a moment; otherwise a stream that begins with what was read of it. */
export async function wholeOrStream(stream: ByteStream): Promise<Uint8Array | ByteStream> {
  const iterator = stream[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let bytes = 0
  const late = Promise.withResolvers<typeof LATE>()
  const timer = setTimeout(() => late.resolve(LATE), MOMENT_MS)
  try {
    while (bytes <= MAX_WHOLE_BYTES) {
      const next = iterator.next()
      const step = await Promise.race([next, late.promise])
      if (step === LATE) return streamOf(iterator, chunks, next)
      if (step.done === true) return Buffer.concat(chunks, bytes)
      chunks.push(step.value)
      bytes += step.value.byteLength
    }
    return streamOf(iterator, chunks)
  } finally {
    clearTimeout(timer)
  }
}

function streamOf(
  iterator: AsyncIterator<Uint8Array>,
  chunks: readonly Uint8Array[],
  pending?: Promise<IteratorResult<Uint8Array>>,
): ByteStream {
  const before = chunks.map((value) => Promise.resolve({ done: false as const, value }))
  const first = pending ? [...before, pending] : before
  // Whoever reads it hears of its failure.
  pending?.catch(() => undefined)
  const rest: AsyncIterator<Uint8Array> = {
    next: () => first.shift() ?? iterator.next(),
    return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
  }
  return { [Symbol.asyncIterator]: () => rest }
}
