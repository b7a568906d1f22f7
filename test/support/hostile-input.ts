import { setFlagsFromString } from 'node:v8'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import type { InboundMessage } from 'svc/channels'

// What a person, or somebody who runs a server of a federation, may write into any field. A message that throws comes
// again for ever, and nothing after it arrives.

// A process with many expressions compiles new ones without optimization: an open quantifier then remembers each place it
// could go back to, and throws once those are too many. So it is tested as it is at its worst.
setFlagsFromString('--no-regexp-optimization')

const LONG = 'a'.repeat(10_000_000)
const hostile: readonly unknown[] = [
  undefined,
  null,
  '',
  ' ',
  0,
  -1,
  1.5,
  9e15,
  1e300,
  true,
  [],
  [null],
  {},
  '\u0000\u202e\r\n\u0007',
  '<b onclick=x>@everyone</b> [x](javascript:x) `',
  '__proto__',
  '\ud800',
  '9'.repeat(400),
  '../../..',
  '(?<a>(((',
]

/** Copies of a value, each with something else in one place. */
function* mutations(value: unknown, values: readonly unknown[]): Generator<unknown> {
  yield* values
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value))
    for (const changed of mutations(inner, values)) {
      const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value }
      Reflect.set(copy, key, changed)
      yield copy
    }
}

export type Read = (raw: unknown) => InboundMessage | undefined
/** Parses what a platform sends, and decodes what has the form of a message. */
export const parsed =
  <S extends v.GenericSchema>(schema: S, decode: (value: v.InferOutput<S>) => InboundMessage | undefined): Read =>
  (raw) => {
    const result = v.safeParse(schema, raw)
    return result.success ? decode(result.output) : undefined
  }

/** What holds for every message that an adapter passes on. */
export function checkMessage(message: InboundMessage | undefined): void {
  if (!message) return
  expect(new Date(message.sentAt).toISOString()).toBe(message.sentAt)
  const { id, chat, sender, text, attachments, replyTo = '' } = message
  for (const one of [id, chat.id, sender.id, sender.name, text, replyTo, ...attachments.map(({ name }) => name)])
    expect(one).toBeTypeOf('string')
  expect(JSON.parse(JSON.stringify(message))).toMatchObject({ id })
  expect(Object.prototype).not.toHaveProperty('polluted')
}

/** Registers tests of a decoder with a valid message and with hostile values in each of its fields. */
export function testHostileInput(name: string, valid: object, read: Read): void {
  describe(`${name}: hostile input`, () => {
    it('reads the message', () => {
      expect(read(valid)).toBeDefined()
    })

    it('reads or leaves out whatever stands in any field, and never throws', () => {
      for (const raw of mutations(valid, hostile)) checkMessage(read(raw))
    })

    it('reads ten megabytes in any field without holding up the daemon', () => {
      const start = process.threadCpuUsage()
      for (const raw of mutations(valid, [LONG])) if (typeof raw === 'object') read(raw)
      expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(3000)
    })
  })
}
