import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { BoxKey, FILE_NONCE, openFile, sealFile } from '../../../adapters/channels/threema/box.ts'
import { newBoxPair, openBox, sealBox, secretBox } from '../../support/platforms/nacl-box.ts'

// The adapter has the boxes of tweetnacl; the other side here is @noble.

describe('the boxes of threema', () => {
  it.each([0, 1, 31, 32, 100, 3500])('with %i bytes are opened by another implementation', (length) => {
    const [bot, ada] = [newBoxPair(), newBoxPair()]
    const key = new BoxKey(`private:${Buffer.from(bot.secret).toString('hex')}`)
    expect(Buffer.from(key.publicKey).equals(bot.public)).toBe(true)
    const data = randomBytes(length)
    const { nonce, box } = key.seal({ type: 1, data }, ada.public, 'attempt')
    const padded = openBox(box, nonce, bot.public, ada.secret)
    const padding = padded.at(-1) ?? 0
    expect(padded.length - 1).toBeGreaterThanOrEqual(32)
    expect(padded.length).toBe(1 + length + padding)
    expect(Buffer.from(padded.subarray(1, 1 + length)).equals(data)).toBe(true)
    expect(new Set(padded.subarray(1 + length))).toEqual(new Set([padding]))
  })

  it('of another implementation are opened, and none of somebody else', () => {
    const [bot, ada, mallory] = [newBoxPair(), newBoxPair(), newBoxPair()]
    const key = new BoxKey(Buffer.from(bot.secret).toString('hex'))
    const nonce = new Uint8Array(randomBytes(24))
    const plain = Buffer.from([1, ...Buffer.from('hello'), 3, 3, 3])
    const box = sealBox(plain, nonce, bot.public, ada.secret)
    expect(key.open({ nonce, box }, ada.public)).toEqual({ type: 1, data: new Uint8Array(Buffer.from('hello')) })
    expect(key.open({ nonce, box }, mallory.public)).toBeUndefined()
    expect(key.open({ nonce, box: box.with(20, (box[20] ?? 0) ^ 1) }, ada.public)).toBeUndefined()
    for (const wrong of [[], [1], [1, 0], [1, 9], [1, 2, 2, 255]]) {
      const short = sealBox(Uint8Array.from(wrong), nonce, bot.public, ada.secret)
      expect(key.open({ nonce, box: short }, ada.public)).toBeUndefined()
    }
  })

  it('are the same with every attempt, and have another nonce with anything else', () => {
    const [bot, ada, clara] = [newBoxPair(), newBoxPair(), newBoxPair()]
    const key = new BoxKey(Buffer.from(bot.secret).toString('hex'))
    const content = { type: 1, data: Buffer.from('hello') }
    const first = key.seal(content, ada.public, 'a')
    expect(key.seal(content, ada.public, 'a')).toEqual(first)
    const others = [
      key.seal(content, ada.public, 'b'),
      key.seal(content, clara.public, 'a'),
      key.seal({ type: 2, data: content.data }, ada.public, 'a'),
      key.seal({ type: 1, data: Buffer.from('hallo') }, ada.public, 'a'),
    ]
    const nonces = [first, ...others].map(({ nonce }) => Buffer.from(nonce).toString('hex'))
    expect(new Set(nonces).size).toBe(nonces.length)
  })

  it('for files are opened by another implementation, in both directions', () => {
    const bytes = new Uint8Array(randomBytes(1000))
    const { key, sealed } = sealFile(bytes)
    expect(secretBox(key, FILE_NONCE).decrypt(sealed)).toEqual(bytes)
    expect(openFile(secretBox(key, FILE_NONCE).encrypt(bytes), key)).toEqual(bytes)
    expect(openFile(sealed.with(0, (sealed[0] ?? 0) ^ 1), key)).toBeUndefined()
  })
})
