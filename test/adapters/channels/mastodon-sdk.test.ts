import { createRestAPIClient, createStreamingAPIClient } from 'masto'
import { expect, it } from 'vitest'
import { startFakeMastodon } from '../../support/platforms/mastodon.ts'

// An independent client against our fake: what it cannot work with is not what the platform does.

it('masto sends, reads and removes posts, uploads, and hears of mentions', async () => {
  await using fake = await startFakeMastodon()
  const url = String(fake.config['base_url'])
  const accessToken = String(fake.config['token'])
  const rest = createRestAPIClient({ url, accessToken })
  const { configuration } = await rest.v2.instance.fetch()
  const { id: botId, acct } = await rest.v1.accounts.verifyCredentials()
  expect([botId, acct]).toEqual(['109', 'svc'])

  const streaming = createStreamingAPIClient({
    streamingApiUrl: configuration.urls.streaming,
    accessToken,
    retry: false,
  })
  const events = streaming.user.notification.subscribe()[Symbol.asyncIterator]()
  const first = events.next()
  await fake.waitForListener?.()
  const mentionedIn = await fake.post({ text: 'hello <b>', visibility: 'public' })
  const { value: event } = await first
  expect(event).toMatchObject({ event: 'notification', payload: { type: 'mention', status: { id: mentionedIn } } })
  streaming.close()

  const mentions = await rest.v1.notifications.list({ types: ['mention'], minId: '0', limit: 40 })
  expect(mentions).toMatchObject([{ type: 'mention', account: { acct: 'ada' }, status: { visibility: 'public' } }])

  fake.processSlowly()
  const media = await rest.v2.media.create({ file: new Blob(['x'], { type: 'image/png' }), description: 'a dot' })
  const fields = {
    status: '@ada look',
    inReplyToId: mentionedIn,
    visibility: 'unlisted' as const,
    mediaIds: [media.id],
  }
  const options = { requestInit: { headers: { 'Idempotency-Key': 'key-1' } } }
  const sent = await rest.v1.statuses.create(fields, options)
  expect((await rest.v1.statuses.create(fields, options)).id).toBe(sent.id)
  expect(fake.sent).toMatchObject([
    { text: 'look', replyTo: mentionedIn, key: 'key-1', files: [{ mime: 'image/png' }] },
  ])
  const { ancestors } = await rest.v1.statuses.$select(sent.id).context.fetch()
  expect(ancestors.map(({ id }) => id)).toEqual([mentionedIn])
  await rest.v1.statuses.$select(sent.id).remove()
  await expect(rest.v1.statuses.$select(sent.id).remove()).rejects.toThrow('Record not found')

  fake.fail({ kind: 'rate_limit', retryAfterSecs: 60 })
  await expect(rest.v1.statuses.create({ status: '@ada x' }, options)).rejects.toThrow('Too many requests')
  expect(fake.violations).toEqual([])
})
