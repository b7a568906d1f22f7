import { randomBytes } from 'node:crypto'
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

function openVault(known: SecretScanner, name = 'plugin') {
  const kept = new Map<string, string>()
  return scannedVault(
    known,
    {
      read: async (entry) => kept.get(entry),
      write: async (entry, value) => void kept.set(entry, value),
      remove: async (entry) => kept.delete(entry),
      names: async () => [...kept.keys()],
    },
    name,
  )
}

it('of a record with a key and an address only the key is learnt', async () => {
  const fresh = new SecretScanner()
  const vault = openVault(fresh)
  await vault.write(
    'vendor',
    JSON.stringify({ keys: ['sk-canary-5d1f0c7a9be34e21'], address: 'https://api.vendor.example/v1/models' }),
  )
  expect(fresh.containsSecret('fetch https://api.vendor.example/v1/models')).toBe(false)
  expect(fresh.containsSecret('say sk-canary-5d1f0c7a9be34e21')).toBe(true)
})

it('of tokens that replace one another the present one and the latest are known, not all there ever were', async () => {
  const fresh = new SecretScanner()
  const vault = openVault(fresh)
  const token = (at: number) => randomBytes(24).toString('hex') + at
  const tokens = Array.from({ length: 150 }, (_, at) => token(at))
  for (const [at, value] of tokens.entries()) {
    await vault.write('token', value)
    // Both those that a scan has hashed and those that none has are forgotten.
    if (at % 2 === 0) expect(fresh.containsSecret(value)).toBe(true)
  }
  const isKnown = tokens.map((value) => fresh.containsSecret(value))
  expect(isKnown.slice(-50)).toEqual(isKnown.slice(-50).map(() => true))
  expect(isKnown.slice(0, 50)).toEqual(isKnown.slice(0, 50).map(() => false))
})

it('a secret that two have is known as long as one of them has it', async () => {
  const fresh = new SecretScanner()
  const [one, other] = [openVault(fresh, 'one'), openVault(fresh, 'other')]
  await one.write('key', secret)
  await other.write('key', secret)
  expect(fresh.containsSecret(secret)).toBe(true)
  await one.remove('key')
  for (let at = 0; at < 100; at++) await one.write('key', randomBytes(32).toString('hex'))
  expect(fresh.containsSecret(secret)).toBe(true)
  await other.remove('key')
  for (let at = 0; at < 100; at++) await one.write('key', randomBytes(32).toString('hex'))
  expect(fresh.containsSecret(secret)).toBe(false)
})
