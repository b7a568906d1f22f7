import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/threema/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/threema/decode.ts'
import { Callback } from '../../../adapters/channels/threema/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { bytesOf } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeThreema } from '../../support/platforms/threema.ts'

async function openStage() {
  const fake = await FakeThreema.start()
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const file = (name: string, bytes = 'abc') => ({
  kind: 'file' as const,
  name,
  mime: 'text/plain',
  bytes: Buffer.from(bytes),
})

describe('threema', () => {
  it('needs every key that it checks messages with', () => {
    const config = { threema_id: '*SVCTEST', token: 'secret', private_key: 'ab'.repeat(32) }
    expect(v.is(adapter.config, config)).toBe(true)
    expect(v.is(adapter.config, { ...config, private_key: `private:${'ab'.repeat(32)}` })).toBe(true)
    const wrong = [{ token: '' }, { token: undefined }, { private_key: 'ab' }, { threema_id: 'ADAADA01' }]
    for (const more of wrong) expect(v.is(adapter.config, { ...config, ...more })).toBe(false)
  })

  it('does not open with a private key that is not registered for the id', async () => {
    const fake = await FakeThreema.start()
    const config = { ...fake.config, private_key: 'ab'.repeat(32) }
    await using stage = new ChannelStage(adapter, fake, config)
    for (const run of [() => stage.open(), () => adapter.probe(stage.test.link)])
      await expect(run()).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })

  it('tells the credits that are left', async () => {
    await using it = await openStage()
    expect(await adapter.probe(it.stage.test.link)).toEqual({ account: '*SVCTEST (97 credits)' })
  })

  it('shows the name that a person chose, and that person’s id as the sender', async () => {
    await using it = await openStage()
    const name = '\u202eadA'
    const fields = it.fake.fieldsOf('0a'.repeat(8), Buffer.from('\u0001hi'), { nickname: name })
    expect((await it.stage.receiveWebhook(it.fake.signed(fields))).status).toBe(200)
    expect(it.stage.test.received).toMatchObject([{ id: '0a'.repeat(8), sender: { id: 'ADAADA01', name } }])
  })

  it('leaves out receipts, messages for another id, and boxes of somebody else, and does not want them again', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const hello = Buffer.from('\u0001hello')
    const requests = [
      fake.fieldsOf('01'.repeat(8), Buffer.from([0x80, 1, ...new Uint8Array(8)])),
      fake.fieldsOf('02'.repeat(8), hello, { to: '*ANOTHER' }),
      fake.fieldsOf('03'.repeat(8), hello, { box: 'ab'.repeat(60) }),
      // Its key is not known.
      fake.fieldsOf('04'.repeat(8), hello, { from: 'GONEGONE' }),
      fake.fieldsOf('05'.repeat(8), Buffer.from('\u0017{"b":"nothing"}')),
      fake.fieldsOf('06'.repeat(8), Buffer.from('\u0001 \n')),
    ]
    for (const fields of requests) expect((await stage.receiveWebhook(fake.signed(fields))).status).toBe(200)
    expect(stage.test.received).toEqual([])
    expect(stage.test.logged.join('\n')).toContain('cannot be opened')
  })

  it('refuses bodies that are too large, and fields that are not those of a message', async () => {
    await using it = await openStage()
    const fields = it.fake.fieldsOf('01'.repeat(8), Buffer.from('\u0001hello'))
    const large = it.fake.signed({ ...fields, box: 'ab'.repeat(20_000) })
    const wrong = [{ from: '../../..' }, { messageId: 'x' }, { date: 'soon' }, { nonce: 'ab' }, { box: 'xyz' }]
    for (const request of [large, ...wrong.map((more) => it.fake.signed({ ...fields, ...more }))])
      expect((await it.stage.receiveWebhook(request)).status).toBe(400)
    expect(it.stage.test.received).toEqual([])
  })

  it('asks for a public key once', async () => {
    await using it = await openStage()
    const before = it.fake.keyLookups
    for (const text of ['one', 'two']) {
      await it.fake.deliver({ text })
      await it.stage.connection.send(it.stage.message(text))
    }
    expect(it.fake.keyLookups - before).toBe(1)
  })

  it('wants a message again while the key of its sender cannot be had', async () => {
    await using it = await openStage()
    it.stage.test.nextAnswer = new Response('Back soon', { status: 503 })
    const fields = it.fake.fieldsOf('01'.repeat(8), Buffer.from('\u0001hello'))
    expect((await it.stage.receiveWebhook(it.fake.signed(fields))).status).toBe(500)
    expect((await it.stage.receiveWebhook(it.fake.signed(fields))).status).toBe(200)
    expect(it.stage.test.received).toMatchObject([{ text: 'hello' }])
  })

  it('reads a place with its name', () => {
    const callback = v.parse(Callback, {
      from: 'ADAADA01',
      to: '*SVCTEST',
      messageId: '01'.repeat(8),
      date: '1760000000',
      nonce: '00'.repeat(24),
      box: '00',
    })
    const data = Buffer.from('47.2,8.8,12\nOffice\nMain Street 1')
    expect(decodeMessage(callback, { type: 0x10, data })?.text).toBe('Office\nMain Street 1\nLocation: 47.2, 8.8')
  })

  it('sends a short text under a file, and a long one before it; another attempt uploads nothing again', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const send = (text: string) => {
      const message = stage.message(text, { attachments: [attachmentOf(file('a.txt'))] })
      return { message, run: () => stage.connection.send(message) }
    }
    await send('short').run()
    const long = send('x'.repeat(1001))
    await long.run()
    const { run } = send('again')
    fake.fail({ kind: 'lost_answer' })
    await expect(run()).rejects.toMatchObject({ retry: 'later' })
    await run()
    expect(fake.sent.map(({ text, files }) => [text.length, files.length])).toEqual([
      [5, 1],
      [1001, 0],
      [0, 1],
      [5, 1],
    ])
  })

  it('gives out no file that was altered', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: '', files: [file('a.txt')] })
    const [message] = await it.stage.test.waitForReceived(1)
    const reference = message?.attachments[0]?.reference ?? {}
    const read = async (more: object) => {
      const content = await it.stage.connection.readAttachment?.({ ...reference, ...more }, AbortSignal.timeout(5000))
      return bytesOf(content ?? (async function* () {})())
    }
    expect(String(await read({}))).toBe('abc')
    await expect(read({ key: '00'.repeat(32) })).rejects.toThrow('not the file that was sent')
    await expect(read({ blob: '../credits' })).rejects.toThrow()
  })

  it('says that there are no credits, and that a chat is none', async () => {
    await using it = await openStage()
    it.fake.fail({ kind: 'permanent' })
    const { connection } = it.stage
    await expect(connection.send(it.stage.message('hi'))).rejects.toThrow('there are no credits left')
    const to = { chatId: '../credits' }
    await expect(connection.send(it.stage.message('hi', { to }))).rejects.toMatchObject({ retry: 'never' })
  })
})

const content = { b: '0'.repeat(32), k: '0'.repeat(64), m: 'image/png', n: 'a.png', s: 5, d: 'hi', j: 1 }
testHostileInput(
  'threema',
  {
    from: 'ADAADA01',
    to: '*SVCTEST',
    messageId: '0'.repeat(16),
    date: '1760000000',
    nonce: '0'.repeat(48),
    box: '00',
    nickname: 'Ada',
  },
  parsed(Callback, (callback) => decodeMessage(callback, { type: 1, data: Buffer.from('hi') })),
)
testHostileInput('threema, a file', content, (raw) => {
  const callback = { from: 'ADAADA01', to: '*SVCTEST', messageId: '0'.repeat(16), date: '1', nonce: '', box: '' }
  return decodeMessage(callback, { type: 0x17, data: Buffer.from(JSON.stringify(raw) ?? '') })
})
testHostileInput('threema, a text and a place', { text: `> quote #${'0'.repeat(16)}\n\nhi` }, (raw) => {
  const callback = { from: 'ADAADA01', to: '*SVCTEST', messageId: '0'.repeat(16), date: '1', nonce: '', box: '' }
  const data = Buffer.from(String(Object(raw)['text'] ?? ''))
  return decodeMessage(callback, { type: 1, data }) ?? decodeMessage(callback, { type: 0x10, data })
})
