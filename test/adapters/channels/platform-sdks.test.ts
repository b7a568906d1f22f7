import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startFakeDiscord } from '../../support/platforms/discord.ts'
import { startFakeMatrix } from '../../support/platforms/matrix.ts'
import { startFakeMattermost } from '../../support/platforms/mattermost.ts'
import { startFakeSlack } from '../../support/platforms/slack.ts'

// They tell the console what they do.
beforeAll(() => {
  for (const method of ['log', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => {})
})
afterAll(() => vi.restoreAllMocks())

// The platforms' own clients against our fakes: what they cannot work with is not what the platform does.

it('@discordjs/ws identifies, resumes and gets what it missed; @discordjs/rest sends', async () => {
  const [{ REST }, { WebSocketManager, WebSocketShardEvents }] = await Promise.all([
    import('@discordjs/rest'),
    import('@discordjs/ws'),
  ])
  await using fake = await startFakeDiscord()
  const token = String(fake.config['token'])
  const rest = new REST({ version: '10', api: String(fake.config['base_url']).replace('/v10', '') }).setToken(token)
  const manager = new WebSocketManager({ token, intents: 37_376 as never, rest })
  const events: string[] = []
  const { promise: resumed, resolve } = Promise.withResolvers<void>()
  manager.on(WebSocketShardEvents.Resumed, () => resolve())
  manager.on(WebSocketShardEvents.Dispatch, (payload) => {
    if (payload.t === 'MESSAGE_CREATE') events.push(payload.d.content)
  })
  await manager.connect()
  await fake.deliver({ text: 'one' })
  fake.sendFrame({ op: 7, d: null })
  await fake.deliver({ text: 'two' })
  await resumed
  await expect.poll(() => events).toEqual(['one', 'two'])
  await rest.post('/channels/1000/messages', {
    body: {
      content: 'hello',
      nonce: 'n',
      enforce_nonce: true,
      allowed_mentions: { parse: [] },
      attachments: [{ id: 0, filename: 'a.txt' }],
    },
    files: [{ name: 'a.txt', data: Buffer.from('a'), contentType: 'text/plain' }],
  })
  expect(fake.sent).toMatchObject([{ text: 'hello', files: [{ name: 'a.txt' }] }])
  await manager.destroy()
  expect(fake.violations).toEqual([])
})

it('@slack/socket-mode receives and acknowledges; @slack/web-api sends texts and files', async () => {
  const [{ SocketModeClient }, { LogLevel, WebClient }] = await Promise.all([
    import('@slack/socket-mode'),
    import('@slack/web-api'),
  ])
  await using fake = await startFakeSlack()
  const slackApiUrl = `${fake.config['base_url']}/`
  const client = new SocketModeClient({ appToken: String(fake.config['app_token']), clientOptions: { slackApiUrl } })
  const texts: string[] = []
  client.on('message', async ({ event, ack }: { event: { text: string }; ack: () => Promise<void> }) => {
    texts.push(event.text)
    await ack()
  })
  await client.start()
  await fake.deliver({ text: 'one' })
  await expect.poll(() => fake.acknowledged.length).toBe(1)
  expect(texts).toEqual(['one'])
  const web = new WebClient(String(fake.config['token']), {
    slackApiUrl,
    retryConfig: { retries: 0 },
    logLevel: LogLevel.ERROR,
  })
  expect(await web.auth.test()).toMatchObject({ ok: true, user_id: 'U00BOT' })
  const { ts } = (await web.apiCall('chat.postMessage', { channel: 'C0001', text: 'hello' })) as unknown as {
    ts: string
  }
  await web.chat.update({ channel: 'C0001', ts, text: 'changed' })
  await web.reactions.add({ channel: 'C0001', timestamp: ts, name: 'eyes' })
  await web.filesUploadV2({ channel_id: 'C0001', filename: 'a.txt', file: Buffer.from('abc'), initial_comment: 'look' })
  expect(fake.sent).toMatchObject([{ text: 'changed' }, { text: 'look', files: [{ name: 'a.txt' }] }])
  fake.fail({ kind: 'permanent' })
  await expect(web.apiCall('chat.postMessage', { channel: 'C0001', text: 'x' })).rejects.toThrow('is_archived')
  await client.disconnect()
  // Slack's client does, and ours does not.
  expect(fake.violations).toEqual(['the token was sent to the upload server'])
})

it('@mattermost/client receives posts, and sends posts and files', async () => {
  const { Client4, WebSocketClient } = (await import('@mattermost/client')).default
  await using fake = await startFakeMattermost()
  const url = String(fake.config['base_url'])
  const token = String(fake.config['token'])
  const socket = new WebSocketClient({ newWebSocketFn: (address) => new WebSocket(address.split('?')[0] ?? '') })
  const posts: string[] = []
  socket.addMessageListener((message) => {
    const { post = '{}' } = message.data as { post?: string }
    if (message.event === 'posted') posts.push((JSON.parse(post) as { message: string }).message)
  })
  socket.initialize(`${url.replace('http', 'ws')}/api/v4/websocket`, token)
  await fake.waitForListener!()
  await fake.deliver({ text: 'one' })
  await expect.poll(() => posts).toEqual(['one'])
  const client = new Client4()
  client.setUrl(url)
  client.setToken(token)
  const me = await client.getMe()
  const channel = fake.chats.direct
  const form = new FormData()
  form.append('channel_id', channel)
  form.append('files', new Blob(['abc']), 'a.txt')
  const { file_infos: files } = await client.uploadFile(form)
  const pending = `${me.id}:1`
  const wanted = {
    channel_id: channel,
    message: 'hello',
    pending_post_id: pending,
    file_ids: files.map(({ id }) => id),
  }
  const post = await client.createPost(wanted as never)
  expect((await client.createPost(wanted as never)).id).toBe(post.id)
  await client.patchPost({ id: post.id, message: 'changed' })
  await client.addReaction(me.id, post.id, 'eyes')
  expect(Object.values((await client.getPostsSince(channel, 0)).posts)).toHaveLength(2)
  expect(fake.sent).toMatchObject([{ text: 'changed', files: [{ name: 'a.txt' }] }])
  socket.close()
  expect(fake.violations).toEqual([])
})

it('matrix-js-sdk signs in, syncs, sends under a transaction, edits and uploads', async () => {
  const { ClientEvent, createClient, MsgType, RelationType, RoomEvent } = await import('matrix-js-sdk')
  const silent = (): void => {}
  const logger = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, getChild: () => logger }
  await using fake = await startFakeMatrix()
  const baseUrl = String(fake.config['base_url'])
  const { user_id: userId, access_token: accessToken } = await createClient({ baseUrl, logger }).loginRequest({
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: 'svc' },
    password: String(fake.passwordConfig['password']),
  })
  const client = createClient({ baseUrl, userId, accessToken, logger })
  const room = fake.chats.group!
  const content = {
    msgtype: MsgType.Text,
    body: 'hello',
    format: 'org.matrix.custom.html',
    formatted_body: 'hello',
    'm.mentions': {},
  } as const
  const sent = await client.sendMessage(room, content, 'txn-1')
  expect(await client.sendMessage(room, content, 'txn-1')).toEqual(sent)
  const changed = { ...content, body: 'changed', formatted_body: 'changed' }
  const relation = { rel_type: RelationType.Replace, event_id: sent.event_id } as const
  await client.sendMessage(room, { ...changed, 'm.new_content': changed, 'm.relates_to': relation }, 'txn-2')
  expect(fake.sent).toMatchObject([{ text: 'changed', edits: ['hello'] }])
  expect(Object.keys((await client.getJoinedRoomMembers(room)).joined)).toContain(userId)
  expect((await client.uploadContent(Buffer.from('abc'), { name: 'a.txt' })).content_uri).toMatch(/^mxc:/)
  const texts: unknown[] = []
  client.on(RoomEvent.Timeline, (event) => {
    if (event.getSender() === fake.person) texts.push(event.getContent()['body'])
  })
  const synced = new Promise<void>((resolve) => {
    client.on(ClientEvent.Sync, (state) => state === 'PREPARED' && resolve())
  })
  await client.startClient({ initialSyncLimit: 1 })
  await synced
  await fake.deliver({ text: 'one', isGroup: true })
  await expect.poll(() => texts).toEqual(['one'])
  client.stopClient()
  expect(fake.violations).toEqual([])
})
