import { createClient } from 'matrix-js-sdk'
import { expect, it } from 'vitest'
import { ROOM, startFakeGitter } from '../../support/platforms/gitter.ts'

it('is joined by address as matrix-js-sdk joins a room', async () => {
  await using fake = await startFakeGitter()
  fake.aliases.set('#acme_garden:gitter.im', '!new:gitter.im')
  const silent = (): void => {}
  const logger = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, getChild: () => logger }
  const { token, base_url: baseUrl } = fake.config
  const client = createClient({
    baseUrl: String(baseUrl),
    accessToken: String(token),
    userId: '@svc:example.org',
    logger,
  })
  expect((await client.joinRoom('#acme_garden:gitter.im')).roomId).toBe('!new:gitter.im')
  expect((await client.joinRoom(ROOM)).roomId).toBe(fake.chats.group)
  await expect(client.joinRoom('#none:gitter.im')).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
  expect(fake.joined).toContain('!new:gitter.im')
  expect(fake.violations).toEqual([])
})
