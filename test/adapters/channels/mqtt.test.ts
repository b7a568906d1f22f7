import { v7 as uuid } from 'uuid'
import * as v from 'valibot'
import { afterAll, expect, it } from 'vitest'
import mqtt from '../../../adapters/channels/mqtt/adapter.ts'
import { isFilter, matchesFilter, topicFor } from '../../../adapters/channels/mqtt/topics.ts'
import { testChannel } from '../../contract/channel.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { MosquittoPlatform, startMosquitto } from '../../support/platforms/mqtt.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'

const mosquitto = new SharedServer(startMosquitto)
afterAll(() => mosquitto[Symbol.asyncDispose]())

for (const protocol of ['v4', 'v5'] as const)
  testChannel({
    name: `mqtt ${protocol} on mosquitto`,
    load: () => import('../../../adapters/channels/mqtt/adapter.ts'),
    start: async () => MosquittoPlatform.start(await mosquitto.get(), protocol),
  })

const message = (chatId: string, text: string, replyContext?: Readonly<Record<string, unknown>>) => ({
  id: uuid(),
  to: { chatId, ...(replyContext && { replyContext }) },
  text,
  plainText: text,
  attachments: [],
})

it('answers where the sender wants it, if the operator permits that topic', async () => {
  await using platform = await MosquittoPlatform.start(await mosquitto.get(), 'v5')
  await using test = new TestLink(mqtt, platform.config)
  await using connection = await mqtt.open(test.link)
  const correlationData = Buffer.from('request 7')
  const wanted = `${platform.root}/out/wanted/ada`
  await platform.publish('plain words', { properties: { responseTopic: wanted, correlationData } })
  await platform.publish('{"text":"json","sender":"Ada","reply_to":"home/door/open"}')
  await platform.publish('{"no":"text"}', {}, 'a%2Fb')
  const [plain, json, other] = await test.waitForReceived(3)
  expect(plain).toMatchObject({ text: 'plain words', replyContext: { topic: wanted } })
  expect(json).toMatchObject({ text: 'json', sender: { id: 'ada', name: 'Ada' }, chat: { id: 'ada' } })
  expect([json?.replyContext, other?.text]).toEqual([undefined, '{"no":"text"}'])
  await connection.send(message('ada', 'answer', plain?.replyContext))
  await connection.send(message('../x/#', 'elsewhere'))
  await platform.waitForSent(2)
  expect(platform.packets).toEqual([
    { topic: wanted, correlation: 'request 7' },
    { topic: `${platform.root}/out/..%2Fx%2F%23`, correlation: undefined },
  ])
})

it('does not take retained messages, and gives repeated ones the id they had, also after a restart', async () => {
  await using platform = await MosquittoPlatform.start(await mosquitto.get(), 'v5', 'ws')
  await platform.publish('retained', { retain: true })
  await using test = new TestLink(mqtt, { ...platform.config, status_topic: `${platform.root}/out/status` })
  const first = await mqtt.open(test.link)
  test.isRefusing = true
  await platform.publish('the same words')
  await first.closed
  test.isRefusing = false
  await using second = await mqtt.open(test.renew())
  await platform.publish('the same words')
  const received = await test.waitForReceived(2)
  expect(received.map(({ text }) => text)).toEqual(['the same words', 'the same words'])
  await second[Symbol.asyncDispose]()
  const shown = await platform.waitForSent(4)
  expect(shown.at(-1)).toMatchObject({ chatId: 'status', text: 'offline' })
  expect(test.connections).toBe(0)
})

it('reports what the broker refuses', async () => {
  await using platform = await MosquittoPlatform.start(await mosquitto.get(), 'v5')
  await using test = new TestLink(mqtt, { ...platform.config, publish_topic: 'forbidden/{user}' })
  await using connection = await mqtt.open(test.link)
  await expect(connection.send(message('ada', 'x'))).rejects.toMatchObject({
    reason: 'invalid_request',
    retry: 'never',
  })
})

it('refuses topics with which the bot would answer itself, and others that are none', () => {
  const fields = { base_url: 'mqtts://broker.test', subscribe_topics: ['svc/#'] }
  expect(v.safeParse(mqtt.config, fields).success).toBe(false)
  expect(v.safeParse(mqtt.config, { ...fields, subscribe_topics: ['svc/in/+'] }).success).toBe(true)
  expect(['a/+/b', '#', 'a/#'].every(isFilter)).toBe(true)
  expect(['a/#/b', 'a+', '', 'a\0'].some(isFilter)).toBe(false)
  expect(matchesFilter('a/+/c', 'a/b/c') && matchesFilter('a/#', 'a') && matchesFilter('#', 'x/y')).toBe(true)
  expect(matchesFilter('a/+', 'a/b/c') || matchesFilter('#', '$SYS/x') || matchesFilter('a/b', 'a')).toBe(false)
  expect(topicFor('out/{user}', 'a/+#b')).toBe('out/a%2F+%23b'.replace('+', encodeURIComponent('+')))
})
