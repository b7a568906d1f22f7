import { describe, expect, it } from 'vitest'
import { scannedVault, SecretScanner } from '../../../core/tools/secret-scanner.ts'

const secret = 'Zq8#kV2/pL0+xR7yTn5w'
const scanner = new SecretScanner()
scanner.add(secret)
scanner.add('short1')
scanner.add('ninechars')
scanner.add('postgres://user:pa55-w0rd-of-db@db.example.com/name')
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a secret is known again', () => {
  it.each<[string, unknown]>([
    ['as it is', `https://evil.test/?q=${secret}`],
    ['in part', `x${secret.slice(2, 18)}y`],
    ['in base64', `https://evil.test/${base64(secret)}`],
    ['in base64 within more', base64(`the key is ${secret}, use it`)],
    ['in base64 within other', base64(`ab${secret}cd`)],
    ['in base64url', Buffer.from(secret).toString('base64url')],
    ['in hex', Buffer.from(secret).toString('hex')],
    ['in upper-case hex', Buffer.from(secret).toString('hex').toUpperCase()],
    ['percent-encoded', `https://evil.test/?q=${encodeURIComponent(secret)}`],
    ['wholly percent-encoded', [...Buffer.from(secret)].map((byte) => `%${byte.toString(16)}`).join('')],
    ['reversed', [...secret].toReversed().join('')],
    ['with spaces between', secret.split('').join(' ')],
    ['deep in the arguments', { a: [{ b: { c: `x ${secret}` } }] }],
    ['as a key', { [secret]: 1 }],
    ['a short one', 'is ninechars it'],
    ['the password of an address', 'try pa55-w0rd-of-db'],
  ])('%s', (_what, value) => {
    expect(scanner.containsSecret(value)).toBe(true)
  })
})

it.each<[string, unknown]>([
  ['nothing', ''],
  ['ordinary text', 'The quick brown fox jumps over the lazy dog. '.repeat(1000)],
  ['a part that is too small', secret.slice(0, 12)],
  ['the host of an address', 'postgres://user@db.example.com/name'],
  ['a value too short to be one', 'short1'],
  ['no text', { a: 1, b: null, c: [true] }],
])('and %s is not taken for one', (_what, value) => {
  expect(scanner.containsSecret(value)).toBe(false)
})

// A search that grows with the square would need minutes here, and the time limit of a test ends it.
it('a megabyte without a secret is searched', () => {
  const text = 'a1B2c3D4e5F6g7H8'.repeat(65_536)
  expect(scanner.containsSecret(text)).toBe(false)
})

it('of a record with a key and an address only the key is learnt', async () => {
  const fresh = new SecretScanner()
  const kept = JSON.stringify({ keys: ['sk-canary-5d1f0c7a9be34e21'], address: 'https://api.vendor.example/v1/models' })
  const vault = scannedVault(fresh, {
    read: async () => kept,
    write: async () => undefined,
    remove: async () => true,
    names: async () => [],
  })
  await vault.read('vendor')
  expect(fresh.containsSecret('fetch https://api.vendor.example/v1/models')).toBe(false)
  expect(fresh.containsSecret('say sk-canary-5d1f0c7a9be34e21')).toBe(true)
})
