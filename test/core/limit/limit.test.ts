import { expect, test } from 'vitest'
import { clientAddress, limiterKey, trustedProxies } from '../../../core/limit/client.ts'
import { createLimiter } from '../../../core/limit/gcra.ts'
import { open, ping } from '../http/harness.ts'

function limiter(tokens: number, maxKeys = 1000) {
  let at = 0
  return {
    limiter: createLimiter({ tokens, windowMs: 60_000, maxKeys, now: () => at }),
    pass: (ms: number) => {
      at += ms
    },
  }
}

test('a full bucket is spent to the last token and refills one interval at a time', () => {
  const { limiter: gate, pass } = limiter(5)
  expect(Array.from({ length: 6 }, () => gate.take('a', 1))).toEqual([true, true, true, true, true, false])
  pass(11_999)
  expect(gate.take('a', 1)).toBe(false)
  pass(1)
  expect([gate.take('a', 1), gate.take('a', 1)]).toEqual([true, false])
})

test('a cost is taken whole or not at all', () => {
  const { limiter: gate } = limiter(5)
  expect([gate.take('a', 6), gate.take('a', 3), gate.take('a', 3), gate.take('a', 2)]).toEqual([
    false,
    true,
    false,
    true,
  ])
})

test('keys do not share a bucket', () => {
  const { limiter: gate } = limiter(1)
  expect([gate.take('a', 1), gate.take('a', 1), gate.take('b', 1)]).toEqual([true, false, true])
})

test('a sweep forgets the keys that are full again', () => {
  const { limiter: gate, pass } = limiter(60)
  gate.take('a', 1)
  gate.take('b', 30)
  pass(2_000)
  expect([gate.sweep(), gate.size]).toEqual([1, 1])
  pass(60_000)
  expect(gate.sweep()).toBe(0)
})

test('the map stays bounded under a flood of addresses', () => {
  const { limiter: gate } = limiter(60, 100)
  for (let n = 0; n < 1000; n++) gate.take(String(n), 5)
  expect(gate.size).toBe(100)
})

test('a changed budget keeps what was used', () => {
  const { limiter: gate } = limiter(10)
  gate.take('a', 10)
  gate.resize(20)
  expect([gate.take('a', 10), gate.take('a', 1)]).toEqual([true, false])
})

test('addresses are folded, and IPv6 counts by its /64', () => {
  expect(clientAddress('::ffff:10.0.0.1', undefined, trustedProxies([]))).toBe('10.0.0.1')
  expect(limiterKey('2001:db8:1:2:3:4:5:6')).toBe(limiterKey('2001:0db8:1:2::9'))
  expect(limiterKey('2001:db8:1:2::1')).not.toBe(limiterKey('2001:db8:1:3::1'))
  expect([limiterKey('::1'), limiterKey('10.0.0.1')]).toEqual(['0:0:0:0::/64', '10.0.0.1'])
})

test('forwarding headers count only from trusted proxies, and then the rightmost hop that is none', () => {
  const trusted = trustedProxies(['10.0.0.0/8', '::1'])
  expect(clientAddress('192.0.2.9', '198.51.100.1', trusted)).toBe('192.0.2.9')
  expect(clientAddress('10.0.0.1', '198.51.100.1, 203.0.113.7', trusted)).toBe('203.0.113.7')
  expect(clientAddress('10.0.0.1', '198.51.100.1, 203.0.113.7, 10.1.1.1', trusted)).toBe('203.0.113.7')
  expect(clientAddress('::ffff:10.0.0.1', '[2001:db8::1]:443', trusted)).toBe('2001:db8::1')
  expect(clientAddress('10.0.0.1', '198.51.100.1, unknown', trusted)).toBe('10.0.0.1')
  expect(clientAddress('10.0.0.1', undefined, trusted)).toBe('10.0.0.1')
  expect(() => trustedProxies(['proxy.example'])).toThrow('neither an address nor a block')
})

test('loopback is limited as well; the answer is flat and names the window', async () => {
  const { url } = await open([{ ...ping, cost: 3 }], { settings: { tokensPerMinute: 7 } })
  const get = () => fetch(`${url}/api/ping`)
  expect([(await get()).status, (await get()).status]).toEqual([200, 200])
  const refused = await get()
  expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
    429,
    '60',
    { error: 'Rate limit exceeded' },
  ])
})

test('an unknown path costs a token', async () => {
  const { url } = await open([ping], { settings: { tokensPerMinute: 2 } })
  await fetch(`${url}/none`)
  await fetch(`${url}/none`)
  expect((await fetch(`${url}/api/ping`)).status).toBe(429)
})

test('the limiter comes before auth', async () => {
  const { url } = await open([{ ...ping, auth: 'bearer' }], { settings: { tokensPerMinute: 1, apiKey: 'k' } })
  expect([
    (await fetch(`${url}/api/ping`)).status,
    (await fetch(`${url}/api/ping`, { headers: { authorization: 'Bearer k' } })).status,
  ]).toEqual([401, 429])
})

test('a client cannot choose its bucket by a header, and behind a trusted proxy each client has its own', async () => {
  const plain = await open([ping], { settings: { tokensPerMinute: 1 } })
  const from = (url: string, address: string) => fetch(`${url}/api/ping`, { headers: { 'x-forwarded-for': address } })
  expect([(await from(plain.url, '192.0.2.1')).status, (await from(plain.url, '192.0.2.2')).status]).toEqual([200, 429])
  expect(plain.logged.filter((line) => line.includes('X-Forwarded-For comes from 127.0.0.1'))).toHaveLength(1)
  expect(plain.http.warnings()).toEqual([expect.stringContaining('not in http.trusted_proxies')])
  plain.settings.trustedProxies = ['127.0.0.1']
  expect(plain.http.warnings()).toEqual([])
  const proxied = await open([ping], { settings: { tokensPerMinute: 1, trustedProxies: ['127.0.0.1'] } })
  expect([
    (await from(proxied.url, '192.0.2.1')).status,
    (await from(proxied.url, '192.0.2.2')).status,
    (await from(proxied.url, '192.0.2.2')).status,
  ]).toEqual([200, 200, 429])
  expect([proxied.logged, proxied.http.warnings()]).toEqual([[], []])
})
