import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { SecretBytes } from '../../../core/storage/secret-bytes.ts'

const canary = 'canary-0123456789'

describe('a secret', () => {
  it('gives its bytes to who asks for them, and shows itself to nobody else', () => {
    using secret = new SecretBytes(canary)
    expect(secret.toText()).toBe(canary)
    expect(secret.length).toBe(17)
    const shown = [
      String(secret),
      `${secret}`,
      JSON.stringify([secret]),
      inspect({ secret }, { showHidden: true, depth: 9 }),
      ['', secret].join('-'),
      Object.values(secret).map(String).join(),
      JSON.stringify(Object.entries(secret)),
    ]
    for (const text of shown) expect(text).not.toContain(canary)
    expect(() => structuredClone(secret)).toThrow()
  })

  it('is overwritten when it is disposed, in memory of its own', () => {
    const original = Buffer.from(canary)
    const secret = new SecretBytes(original)
    const alias = secret.use((bytes) => bytes)
    expect(alias.buffer.byteLength).toBe(alias.byteLength)
    secret[Symbol.dispose]()
    secret[Symbol.dispose]()
    expect(alias.every((byte) => byte === 0)).toBe(true)
    expect(() => secret.toText()).toThrow('wiped')
    // What it was made of belongs to who made it.
    expect(original.toString()).toBe(canary)
  })
})
