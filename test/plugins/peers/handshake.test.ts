import { describe, expect, it } from 'vitest'
import { frame, FrameReader, LINK_BYTES, OPEN_BYTES } from '../../../plugins/peers/frames.ts'
import { answer, call, HANDSHAKE_MS } from '../../../plugins/peers/handshake.ts'
import type { Link, Side } from '../../../plugins/peers/handshake.ts'
import { HalfOpen } from '../../../plugins/peers/half-open.ts'
import { isSame, LinkRefusal, mac } from '../../../plugins/peers/mac.ts'
import { Replays, WINDOW_MS } from '../../../plugins/peers/replays.ts'

const secret = 'the secret that both of these nodes know'
let clock = 1_700_000_000_000
const node = (self: string, own = secret): Side => ({ secret: own, self, now: () => clock })
const alice = node('alice')
const bob = node('bob')

function code(work: () => unknown): number | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof LinkRefusal) return error.code
    throw error
  }
  return undefined
}
function linked(): readonly [Link, Link] {
  const calling = call(alice, 'bob')
  const answering = answer(bob, new Replays(), calling.hello)
  const { proof, link } = calling.accept(JSON.parse(JSON.stringify(answering.challenge)))
  return [link, answering.accept(JSON.parse(JSON.stringify(proof)))]
}

describe('the handshake of peers', () => {
  it('links two nodes that know the secret, with other keys each time and in each direction', () => {
    const [one, other] = linked()
    const frames = [
      one.out.seal(Buffer.from('x')),
      linked()[0].out.seal(Buffer.from('x')),
      other.out.seal(Buffer.from('x')),
    ].map((bytes) => bytes.toString('hex'))
    expect(new Set(frames).size).toBe(3)
    expect(one.in.open(Buffer.from(frames[2] ?? '', 'hex').subarray(4)).toString()).toBe('x')
  })

  it('refuses every message in which one field is another', () => {
    const { hello } = call(alice, 'bob')
    const other = call(alice, 'bob').hello
    const changed = { from: 'mallory', to: 'carol', nonce: other.nonce, sent_at: hello.sent_at + 1, mac: other.mac }
    for (const [field, value] of Object.entries(changed))
      expect([field, code(() => answer(bob, new Replays(), { ...hello, [field]: value }))]).toEqual([field, 403])
    for (const [field, value] of Object.entries(changed)) {
      const calling = call(alice, 'bob')
      const { challenge } = answer(bob, new Replays(), calling.hello)
      expect([field, code(() => calling.accept({ ...challenge, [field]: value }))]).toEqual([field, 403])
    }
  })

  it('refuses what is no message: missing and extra fields, other types, other lengths', () => {
    const { hello } = call(alice, 'bob')
    const { mac: _, ...without } = hello
    for (const message of [
      undefined,
      null,
      'hello',
      [],
      without,
      { ...hello, extra: 1 },
      { ...hello, nonce: 'ab' },
      { ...hello, sent_at: 1.5 },
      { ...hello, from: 'a b' },
      { ...hello, type: 'challenge' },
      { ...hello, mac: hello.mac.toUpperCase() },
    ]) {
      expect(code(() => answer(bob, new Replays(), message))).toBe(400)
    }
    expect(code(() => answer(bob, new Replays(), { ...hello, version: 2 }))).toBe(1)
  })

  it('refuses a call that was made before, also when its nonce could be forgotten', () => {
    const replays = new Replays()
    const { hello } = call(alice, 'bob')
    answer(bob, replays, hello)
    expect(code(() => answer(bob, replays, hello))).toBe(403)
    clock += WINDOW_MS
    expect(code(() => answer(bob, replays, hello))).toBe(403)
    clock += 1
    expect(code(() => answer(bob, replays, hello))).toBe(403)
    clock += WINDOW_MS * 2
    answer(bob, replays, call(alice, 'bob').hello)
    expect(replays.size).toBe(1)
  })

  it('remembers nothing for who proves nothing, and no more than there is room for', () => {
    const replays = new Replays(2)
    for (let at = 0; at < 10; at++) code(() => answer(bob, replays, call(node('alice', `${secret} not`), 'bob').hello))
    expect(replays.size).toBe(0)
    answer(bob, replays, call(alice, 'bob').hello)
    answer(bob, replays, call(alice, 'bob').hello)
    expect(code(() => answer(bob, replays, call(alice, 'bob').hello))).toBe(403)
  })

  it('refuses a call sent back to its caller, as a call and as an answer', () => {
    const calling = call(alice, 'bob')
    expect(code(() => answer(alice, new Replays(), calling.hello))).toBe(403)
    expect(code(() => answer(alice, new Replays(), call(node('alice'), 'alice').hello))).toBe(403)
    expect(code(() => calling.accept({ ...calling.hello, type: 'challenge', from: 'bob', to: 'alice' }))).toBe(403)
  })

  it('refuses an answer and a proof that come late or twice', () => {
    const calling = call(alice, 'bob')
    const answering = answer(bob, new Replays(), calling.hello)
    const { proof } = calling.accept(answering.challenge)
    expect(code(() => calling.accept(answering.challenge))).toBe(400)
    answering.accept(proof)
    expect(code(() => answering.accept(proof))).toBe(400)
    const late = call(alice, 'bob')
    const { challenge, accept } = answer(bob, new Replays(), late.hello)
    clock += HANDSHAKE_MS + 1
    expect(code(() => late.accept(challenge))).toBe(403)
    expect(code(() => accept(proof))).toBe(403)
  })

  it('takes no secret under 32 bytes', () => {
    expect(code(() => call(node('alice', 'x'.repeat(31)), 'bob'))).toBe(403)
    expect(code(() => call(node('alice', 'x'.repeat(32)), 'bob'))).toBeUndefined()
  })

  it('holds so many unproven connections at once and no more', () => {
    let now = 0
    const half = new HalfOpen(() => now, 2)
    const leave = half.enter()
    half.enter()
    expect(half.enter()).toBeUndefined()
    leave?.()
    expect(half.enter()).toBeDefined()
    now += HANDSHAKE_MS + 1
    expect([half.enter(), half.enter(), half.enter()].map((place) => place !== undefined)).toEqual([true, true, false])
  })
})

describe('the frames of a link', () => {
  it('come out as they went in, however the bytes are cut', () => {
    const [one, other] = linked()
    const texts = ['{}', 'x'.repeat(1000), '{"a":"ä"}']
    const bytes = Buffer.concat(texts.map((text) => one.out.seal(Buffer.from(text))))
    for (const size of [1, 3, 7, bytes.length]) {
      const reader = new FrameReader()
      const found: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) found.push(...reader.push(bytes.subarray(at, at + size)))
      expect(found).toHaveLength(3)
      if (size === 1) expect(found.map((content) => other.in.open(content).toString())).toEqual(texts)
    }
  })

  it('are refused when changed, repeated, left out, in another order or sent back', () => {
    const [one, other] = linked()
    const [first, second] = ['first', 'second'].map((text) => one.out.seal(Buffer.from(text)).subarray(4))
    if (!first || !second) throw new Error('no frames')
    expect(code(() => other.in.open(second))).toBe(403)
    expect(code(() => one.in.open(first))).toBe(403)
    for (let at = 0; at < first.length; at++) {
      const changed = Buffer.from(first)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(code(() => other.in.open(changed))).toBe(403)
    }
    expect(other.in.open(first).toString()).toBe('first')
    expect(code(() => other.in.open(first))).toBe(403)
    expect(other.in.open(second).toString()).toBe('second')
    expect(code(() => other.in.open(Buffer.alloc(3)))).toBe(403)
  })

  it('have a limit that is lower before the handshake, and is seen at the length', () => {
    const head = (length: number): Buffer => {
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(length)
      return bytes
    }
    expect(code(() => new FrameReader().push(head(OPEN_BYTES + 1)))).toBe(400)
    expect(new FrameReader().push(frame(Buffer.alloc(OPEN_BYTES)))).toHaveLength(1)
    const proven = new FrameReader()
    proven.raise(LINK_BYTES)
    expect(proven.push(head(OPEN_BYTES + 1))).toHaveLength(0)
    expect(
      code(() => {
        const reader = new FrameReader(LINK_BYTES)
        reader.push(head(LINK_BYTES + 1))
      }),
    ).toBe(400)
    expect(code(() => new FrameReader().push(head(0)))).toBe(400)
  })
})

describe('the code of a message', () => {
  it('has no byte that could belong to another part', () => {
    const key = Buffer.alloc(32, 1)
    expect(mac(key, 'ab', 'c').equals(mac(key, 'a', 'bc'))).toBe(false)
    expect(mac(key, 'ab').equals(mac(key, 'ab', ''))).toBe(false)
  })
  it('is compared as a whole, and never with another length', () => {
    const code = mac(Buffer.alloc(32, 1), 'x')
    expect(isSame(code, Buffer.from(code))).toBe(true)
    expect(isSame(code, code.subarray(0, 31))).toBe(false)
    expect(isSame(code, Buffer.alloc(0))).toBe(false)
  })
})
