import { parse } from 'svc/sdk'
import { expect, it } from 'vitest'
import gitter from '../../../adapters/channels/gitter/adapter.ts'
import { decodeEvent } from '../../../adapters/channels/matrix/decode.ts'
import { Event } from '../../../adapters/channels/matrix/wire.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { ROOM, startFakeGitter } from '../../support/platforms/gitter.ts'
import { TestLink } from '../../support/platforms/link.ts'

it('joins its rooms by their addresses, and reads what is written afterwards', async () => {
  await using platform = await startFakeGitter()
  platform.sendEvent('!new:gitter.im', { type: 'm.room.message', content: { msgtype: 'm.text', body: 'history' } })
  platform.aliases.set('#acme_garden:gitter.im', '!new:gitter.im')
  await using test = new TestLink(gitter, { ...platform.config, rooms: [ROOM, '#acme_garden:gitter.im'] })
  await using connection = await gitter.open(test.link)
  expect(platform.joined).toContain('!new:gitter.im')
  platform.sendEvent('!new:gitter.im', { type: 'm.room.message', content: { msgtype: 'm.text', body: 'hello' } })
  const [message] = await test.waitForReceived(1)
  expect(message).toMatchObject({ text: 'hello', chat: { id: '!new:gitter.im' } })
  expect(connection.warnings?.()).toEqual([])
})

it('works in the other rooms when one is closed to it, and says so', async () => {
  await using platform = await startFakeGitter()
  await using test = new TestLink(gitter, { ...platform.config, rooms: ['#acme_secret:gitter.im', ROOM] })
  await using connection = await gitter.open(test.link)
  await platform.waitForListener?.()
  await platform.deliver({ text: 'here', isGroup: true })
  expect((await test.waitForReceived(1))[0]?.text).toBe('here')
  expect(connection.warnings?.()).toEqual([expect.stringMatching(/cannot join #acme_secret:gitter\.im: .*M_NOT_FOUND/)])
})

it('joins nothing before it can, and with a wrong token nothing at all', async () => {
  await using platform = await startFakeGitter()
  platform.aliases.set('#acme_garden:gitter.im', '!new:gitter.im')
  const config = { ...platform.config, rooms: ['#acme_garden:gitter.im'] }
  await using busy = new TestLink(gitter, config)
  const limited = { errcode: 'M_LIMIT_EXCEEDED', error: 'Too Many Requests' }
  busy.nextAnswer = Response.json(limited, { status: 429, headers: { 'retry-after': '9' } })
  await expect(gitter.open(busy.link)).rejects.toMatchObject({ reason: 'rate_limit', retryAfterSecs: 9 })
  await using wrong = new TestLink(gitter, { ...config, token: 'syt_wrong_token' })
  const failure = await gitter.open(wrong.link).catch((error: unknown) => error)
  expect(failure).toMatchObject({ reason: 'auth', retry: 'never' })
  expect(String(failure)).not.toContain('syt_wrong_token')
  expect(platform.joined).not.toContain('!new:gitter.im')
})

it.each([
  ['acme/kitchen', false],
  ['#acme_kitchen', false],
  ['#acme_kitchen:gitter.im', true],
  ['!abc:gitter.im', true],
  ['#a:gitter.im/../admin', false],
])('takes the room %s: %s', (room, isTaken) => {
  const read = () => parse(gitter.config, { token: 't', rooms: [room] })
  if (isTaken) expect(read()).toMatchObject({ base_url: 'https://gitter.ems.host', rooms: [room] })
  else expect(read).toThrow('#org_repo:gitter.im')
})

testHostileInput(
  'gitter',
  {
    type: 'm.room.message',
    event_id: '$1',
    sender: '@ada-5f0c:gitter.im',
    origin_server_ts: 1_763_640_000_000,
    content: { msgtype: 'm.text', body: '\u202eolleh', 'm.mentions': { user_ids: ['@svc:gitter.im'] } },
  },
  parsed(Event, (event) =>
    decodeEvent(event, {
      roomId: '!room:gitter.im',
      botId: '@svc:gitter.im',
      isDirect: false,
      names: new Map(),
      isOwn: () => false,
    }),
  ),
)
