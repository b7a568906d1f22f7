import { expect, test } from 'vitest'
import { Visitor } from '../../support/openid.ts'
import { audited, bearer, signIn, withOpenId } from './rig.ts'

test('somebody signs in at a real provider and uses the daemon with the token', async () => {
  const { host } = await withOpenId()
  const visitor = new Visitor()
  const { status, body } = await signIn(host, visitor)
  expect([status, body]).toEqual([200, {
    token: expect.stringMatching(/^svc_sso_[\w-]{43}$/), token_type: 'Bearer', expires_in: 86_400, provider: 'oidc', user: { sub: 'ada', email: 'ada@example.org', name: 'Ada Lovelace', picture: null },
  }])
  expect((await host.fetch('/api/audit/verify')).status).toBe(401)
  expect((await host.fetch('/api/audit/verify', { headers: bearer(body.token) })).status).toBe(200)
  expect([...visitor.cookies(new URL(host.url))]).toEqual([])
  expect(await audited(host, 'auth_attempt')).toEqual([expect.stringMatching(/^signed in: ada@example\.org \(ada of provider "oidc", sign-in [\w-]+\) from 127\.0\.0\.1$/)])
})
