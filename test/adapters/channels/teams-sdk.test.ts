import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose'
import type { JSONWebKeySet } from 'jose'
import { expect, it } from 'vitest'
import adapter from '../../../adapters/channels/teams/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeTeams } from '../../support/platforms/teams.ts'

it('jose verifies the tokens of the fake with what it publishes, and the adapter those of jose', async () => {
  const fake = await FakeTeams.start()
  await using stage = new ChannelStage(adapter, fake)
  await stage.open()
  const { jwks_uri: url } = (await (await fetch(fake.config.metadata_url)).json()) as { jwks_uri: string }
  const keys = (await (await fetch(url)).json()) as JSONWebKeySet
  const activity = fake.activity({ text: 'signed by jose' })
  const request = fake.signed(activity)
  const [, token = ''] = (request.headers['authorization'] ?? '').split(' ')
  const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
    issuer: 'https://api.botframework.com',
    audience: fake.config.app_id,
    algorithms: ['RS256'],
  })
  expect(payload['serviceurl']).toBe(activity['serviceUrl'])
  const signed = await new SignJWT(payload)
    .setProtectedHeader({ alg: 'RS256', kid: fake.key.id, typ: 'JWT' })
    .sign(fake.key.privateKey)
  const { status } = await stage.receiveWebhook({ ...request, headers: { authorization: `Bearer ${signed}` } })
  expect(status).toBe(200)
  expect((await stage.test.waitForReceived(1))[0]?.text).toBe('signed by jose')
})
