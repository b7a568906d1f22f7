import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { startVendor } from './vendor-server.ts'
import type { VendorServer } from './vendor-server.ts'

const Body = v.object({ model: v.string(), input: v.array(v.pipe(v.string(), v.nonEmpty())) })

/**
 * Speaks OpenAI's protocol for vectors and answers with those that a real model made of the gold set
 * (`test/fixtures/memory-gold/README.md`). A text that was not recorded gets the vector of the one with which it shares
 * the largest part of its words.
 */
export function startFakeEmbedder(): Promise<VendorServer> {
  const recorded = readVectors()
  const words = [...recorded].map(([text, vector]) => ({ words: wordsIn(text), vector }))
  const vectorOf = (text: string): readonly number[] => {
    const own = wordsIn(text)
    const shared = (other: ReadonlySet<string>): number => {
      const both = [...own].filter((word) => other.has(word)).length
      return both / (own.size + other.size - both || 1)
    }
    return recorded.get(text) ?? words.toSorted((a, b) => shared(b.words) - shared(a.words))[0]?.vector ?? []
  }
  return startVendor((call, answer) => {
    const body = v.safeParse(Body, call.body)
    if (call.url.pathname !== '/v1/embeddings' || !body.success)
      return answer.json(400, { error: { message: "'$.input' is invalid.", type: 'invalid_request_error' } })
    const { model, input } = body.output
    const data = input.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }))
    const usage = { prompt_tokens: input.length, total_tokens: input.length }
    return answer.json(200, { object: 'list', data, model, usage })
  })
}

function readVectors(): ReadonlyMap<string, readonly number[]> {
  const text = readFileSync(new URL('../fixtures/memory-gold/vectors.txt', import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '')
  return new Map(
    lines.map((line) => {
      const end = line.indexOf(' ')
      const bytes = Buffer.from(line.slice(0, end), 'base64')
      return [line.slice(end + 1), [...new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length)]]
    }),
  )
}
const wordsIn = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
