import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import type { JWK, JWTPayload } from 'jose'
import { describe, expect, it } from 'vitest'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { AccessToken, bearerToken, PublishedKeys, verifyToken } from 'svc/channels'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const NOW_SECS = NOW / 1000
const rules = { algorithm: 'RS256', issuer: 'https://issuer.test', audience: 'bot', now: NOW } as const
const good = { iss: 'https://issuer.test', aud: 'bot', exp: NOW_SECS + 60 }
const { publicKey, privateKey } = await generateKeyPair('RS256')
const jwk: JWK = { ...(await exportJWK(publicKey)), kid: 'k1' }
const sign = (claims: JWTPayload, kid = 'k1') =>
  new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey)
const find = async (id: string) => (id === 'k1' ? jwk : undefined)

describe('verifyToken', () => {
  it('returns the claims of a token that is signed with the published key', async () => {
    expect(await verifyToken(await sign({ ...good, sub: 'x' }), find, rules)).toMatchObject({ sub: 'x' })
  })

  it('allows five minutes between the clocks', async () => {
    await verifyToken(await sign({ ...good, exp: NOW_SECS - 290 }), find, rules)
    await expect(verifyToken(await sign({ ...good, exp: NOW_SECS - 310 }), find, rules)).rejects.toThrow(Refusal)
  })

  const secret = 'a secret of thirty-two characters'
  const hmac = (claims: JWTPayload, key: string | Uint8Array) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .sign(typeof key === 'string' ? new TextEncoder().encode(key) : key)

  it.each<[string, () => Promise<string | undefined>]>([
    ['none', async () => undefined],
    ['no token', async () => 'abc'],
    ['another issuer', () => sign({ ...good, iss: 'https://other.test' })],
    ['another audience', () => sign({ ...good, aud: 'other' })],
    ['no end', () => sign({ iss: good.iss, aud: good.aud })],
    ['a time to come', () => sign({ ...good, nbf: NOW_SECS + 400 })],
    ['an unknown key', () => sign(good, 'k2')],
    ['no signature', async () => new UnsecuredJWT(good).encode()],
    ['a changed payload', async () => (await sign(good)).replace(/\.[^.]+\./, `.${btoa('{"exp":9e9}')}.`)],
    ['the public key as a secret', async () => hmac(good, Buffer.from(JSON.stringify(jwk)))],
    ['a length of megabytes', async () => `${await sign(good)}${'a'.repeat(1_000_000)}`],
  ])('refuses %s', async (_, make) => {
    await expect(verifyToken(await make(), find, rules)).rejects.toThrow(Refusal)
  })

  it('verifies with a secret, and never with an empty one', async () => {
    const { issuer: _, audience: __, ...common } = rules
    const own = { ...common, algorithm: 'HS256' } as const
    expect(await verifyToken(await hmac({ exp: good.exp }, secret), secret, own)).toEqual({ exp: good.exp })
    await expect(verifyToken(await hmac({ exp: good.exp }, 'another secret'), secret, own)).rejects.toThrow(Refusal)
    await expect(verifyToken(await hmac({ exp: good.exp }, secret), '', own)).rejects.toThrow(Refusal)
  })

  it('passes on that the keys could not be read', async () => {
    const failure = new UpstreamFailure('x', 'away', { reason: 'network', retry: 'later' })
    await expect(verifyToken(await sign(good), () => Promise.reject(failure), rules)).rejects.toBe(failure)
  })

  it('finds the token in the header', () => {
    const header = (value: string | undefined) => bearerToken({ header: () => value })
    expect(header('Bearer a.b.c')).toBe('a.b.c')
    for (const value of [undefined, '', 'Bearer', 'Bearer ', 'HMAC abc', 'Bearer a b'])
      expect(header(value)).toBe(undefined)
  })
})

describe('PublishedKeys', () => {
  it('asks for keys that it does not know, rarely, and for all of them each day', async () => {
    let now = NOW
    let reads = 0
    let published: readonly JWK[] = [jwk]
    const keys = new PublishedKeys({
      now: () => now,
      read: async () => {
        reads++
        return published
      },
    })
    expect(await Promise.all([keys.find('k1'), keys.find('k1')])).toEqual([jwk, jwk])
    expect(await keys.find('made up')).toBe(undefined)
    expect(reads).toBe(1)
    published = [jwk, { ...jwk, kid: 'k2' }]
    now += 300_000
    expect(await keys.find('k2')).toMatchObject({ kid: 'k2' })
    expect(reads).toBe(2)
    // A key that was withdrawn is not trusted for ever.
    published = []
    now += 86_400_000
    expect(await keys.find('k1')).toBe(undefined)
  })

  it('asks again after a failure', async () => {
    const answers = [() => Promise.reject(new Error('away')), async () => [jwk]]
    const keys = new PublishedKeys({ now: () => NOW, read: async () => (answers.shift() ?? (async () => []))() })
    await expect(keys.find('k1')).rejects.toThrow('away')
    expect(await keys.find('k1')).toEqual(jwk)
  })
})

describe('AccessToken', () => {
  const refused = new UpstreamFailure('x', 'refused', { reason: 'auth', retry: 'never' })
  function issue(lifetimeSecs = 3600) {
    const stage = { now: NOW, issued: 0 }
    const token = new AccessToken({ now: () => stage.now }, async () => ({ token: `t${++stage.issued}`, lifetimeSecs }))
    return { stage, token }
  }

  it('is issued once, and anew five minutes before it expires', async () => {
    const { stage, token } = issue()
    expect(await Promise.all([token.get(), token.get()])).toEqual(['t1', 't1'])
    stage.now += 3_299_000
    expect(await token.get()).toBe('t1')
    stage.now += 1000
    expect(await token.get()).toBe('t2')
  })

  it('is used for half of its life when that is short', async () => {
    const { stage, token } = issue(60)
    await token.get()
    stage.now += 29_000
    expect(await token.get()).toBe('t1')
    stage.now += 1000
    expect(await token.get()).toBe('t2')
  })

  it('is not replaced when the credentials are refused', async () => {
    const { token, stage } = issue()
    await token.get()
    await expect(token.use(() => Promise.reject(refused))).rejects.toBe(refused)
    expect(stage.issued).toBe(1)
  })

  it('is replaced at once when the platform says that it has expired, and that only once', async () => {
    const { token, stage } = issue()
    const expired = new UpstreamFailure('x', 'expired', { reason: 'auth', retry: 'later' })
    const request = (given: string) => (given === 't1' ? Promise.reject(expired) : Promise.resolve(given))
    expect(await token.use(request)).toBe('t2')
    // The credentials are refused then, and not the token.
    await expect(token.use(() => Promise.reject(expired))).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
    expect(stage.issued).toBe(3)
  })

  it('is asked for again when it could not be issued', async () => {
    let attempts = 0
    const token = new AccessToken({ now: () => NOW }, async () => {
      if (++attempts === 1) throw refused
      return { token: 'second', lifetimeSecs: 60 }
    })
    await expect(token.get()).rejects.toBe(refused)
    expect(await token.get()).toBe('second')
  })

  it('is not replaced for another failure', async () => {
    const { token, stage } = issue()
    await token.get()
    const closed = new UpstreamFailure('x', 'closed', { reason: 'invalid_request', retry: 'never' })
    await expect(token.use(() => Promise.reject(closed))).rejects.toBe(closed)
    expect(stage.issued).toBe(1)
  })
})
