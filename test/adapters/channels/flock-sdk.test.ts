import { jwtVerify, SignJWT } from 'jose'
import { expect, it } from 'vitest'
import adapter from '../../../adapters/channels/flock/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeFlock } from '../../support/platforms/flock.ts'

it('jose verifies the event tokens of the fake, and the adapter those of jose', async () => {
  const fake = await FakeFlock.start()
  await using stage = new ChannelStage(adapter, fake)
  await stage.open()
  const secret = new TextEncoder().encode(fake.config.app_secret)
  const request = fake.signed(fake.received('1', 'signed by jose'))
  const { payload } = await jwtVerify(request.headers['x-flock-event-token'] ?? '', secret, { algorithms: ['HS256'] })
  expect(payload).toMatchObject({ appId: fake.config.app_id, userId: fake.person })
  const sign = (alg: string) => new SignJWT(payload).setProtectedHeader({ alg }).sign(secret)
  for (const [alg, status] of [
    ['HS256', 200],
    ['HS512', 401],
  ] as const)
    expect(
      await stage.receiveWebhook({ ...request, headers: { 'x-flock-event-token': await sign(alg) } }),
    ).toMatchObject({ status })
  expect(stage.test.received.map(({ text }) => text)).toEqual(['signed by jose'])
})
