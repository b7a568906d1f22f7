import { createPublicKey } from 'node:crypto'
import { JWT, OAuth2Client } from 'google-auth-library'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { JSONWebKeySet } from 'jose'
import { expect, it } from 'vitest'
import { FakeGoogleChat, PLATFORM_KEY } from '../../support/platforms/google-chat.ts'

it('google-auth-library gets a token of the fake with its grant, and sends a message with it', async () => {
  await using fake = await FakeGoogleChat.start()
  const key = JSON.parse(fake.config.token) as { client_email: string; private_key: string; private_key_id: string }
  const client = new JWT({
    email: key.client_email,
    key: key.private_key,
    keyId: key.private_key_id,
    scopes: ['https://www.googleapis.com/auth/chat.bot'],
  })
  // The library knows one address for tokens: its requests for them are led to the fake.
  client.transporter.interceptors.request.add({
    resolved: async (options) =>
      options.url.href === 'https://oauth2.googleapis.com/token'
        ? { ...options, url: new URL(fake.config.token_url) }
        : options,
  })
  const url = `${fake.origin}/v1/${fake.chats.direct}/messages?requestId=r1`
  const { data } = await client.request<{ name: string }>({ url, method: 'POST', data: { text: 'hello' } })
  expect(fake.sent).toMatchObject([{ id: data.name, text: 'hello', key: 'r1' }])
  expect(fake.issued).toHaveLength(1)
  expect(fake.violations).toEqual([])
})

it.each([
  ['a project number', false, '1234567890', 'chat@system.gserviceaccount.com'],
  ['an address', true, 'https://svc.test/api/channels/google_chat/webhook', 'https://accounts.google.com'],
])('google-auth-library and jose verify the tokens that the fake signs for %s', async (_, addOn, audience, issuer) => {
  await using fake = await FakeGoogleChat.start({ addOn })
  const [, token = ''] = (fake.signed({}).headers['authorization'] ?? '').split(' ')
  const pem = createPublicKey(PLATFORM_KEY.privateKey).export({ type: 'spki', format: 'pem' }).toString()
  const verifier = new OAuth2Client()
  const ticket = await verifier.verifySignedJwtWithCertsAsync(token, { [PLATFORM_KEY.id]: pem }, audience, [issuer])
  expect(ticket.getPayload()).toMatchObject({ iss: issuer, aud: audience })
  const keys = { keys: [PLATFORM_KEY.jwk] } as unknown as JSONWebKeySet
  await jwtVerify(token, createLocalJWKSet(keys), { audience, issuer })
  for (const forgery of fake.forgeries()) {
    const [, forged = ''] = (forgery.headers['authorization'] ?? '').split(' ')
    const outcome = await verifier
      .verifySignedJwtWithCertsAsync(forged, { [PLATFORM_KEY.id]: pem }, audience, [issuer])
      .then((given) => given.getPayload())
      .catch(() => undefined)
    // What the library lets pass is told apart by the claims.
    if (outcome) expect([outcome.email, outcome.email_verified]).not.toEqual([fake.addOnEmail, true])
  }
})
