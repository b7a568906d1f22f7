import { AtpAgent, RichText } from '@atproto/api'
import { expect, it } from 'vitest'
import { encodePost } from '../../../adapters/channels/bluesky/encode.ts'
import { FakeBluesky } from '../../support/platforms/bluesky.ts'

// The client of Bluesky against our fake, and its finder of links beside ours.

async function signedIn() {
  const fake = await FakeBluesky.start()
  const agent = new AtpAgent({ service: fake.origin })
  const { identifier, token: password } = fake.config
  await agent.login({ identifier, password })
  return { fake, agent, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() }
}

it('@atproto/api signs in, reads mentions, answers with a picture and goes on when its token expired', async () => {
  await using it = await signedIn()
  const { agent, fake } = it
  const uri = await fake.deliver({ text: 'hi' })
  fake.expire()
  const { data } = await agent.listNotifications({ reasons: ['mention', 'reply'], limit: 10 })
  expect(data.notifications).toMatchObject([{ uri, reason: 'mention', record: { text: '@helper.bsky.test hi' } }])
  const { cid = '' } = data.notifications[0] ?? {}
  const { data: upload } = await agent.uploadBlob(Buffer.from('not really'), { encoding: 'image/png' })
  await agent.post({
    text: 'hello',
    reply: { root: { uri, cid }, parent: { uri, cid } },
    embed: { $type: 'app.bsky.embed.images', images: [{ image: upload.blob, alt: 'dot.png' }] },
  })
  await agent.updateSeenNotifications(new Date().toISOString() as never)
  expect(fake.sent).toMatchObject([{ text: 'hello', replyTo: uri, files: [{ name: 'dot.png' }] }])
  expect(fake.refreshes).toBe(1)
  expect(fake.violations).toEqual([])
})

it('@atproto/api is refused a second record under a key that is taken', async () => {
  await using it = await signedIn()
  const write = (text: string) =>
    it.agent.com.atproto.repo.putRecord({
      repo: it.agent.session?.did ?? '',
      collection: 'app.bsky.feed.post',
      rkey: '3kaaaaaaaaaaa',
      swapRecord: null,
      record: { $type: 'app.bsky.feed.post', text, createdAt: '2026-11-20T12:00:00Z' },
    })
  await write('one')
  await expect(write('two')).rejects.toMatchObject({ error: 'InvalidSwap' })
  expect(it.fake.sent.map(({ text }) => text)).toEqual(['one'])
})

it.each([
  'see https://example.org/a?b=1#c.',
  'ä 👩‍👩‍👧 https://example.org, and https://example.com/x!',
  'none here',
  '(https://example.org/a)',
])('finds the links that @atproto/api finds in %j', (text) => {
  const theirs = new RichText({ text })
  theirs.detectFacetsWithoutResolution()
  const ours = encodePost({ text, images: [], createdAt: '', reply: undefined }).facets
  expect(ours).toEqual(theirs.facets?.map(({ index, features }) => ({ index, features })))
})
