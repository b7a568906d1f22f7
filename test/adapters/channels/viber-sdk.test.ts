import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { FakeViber } from '../../support/platforms/viber.ts'

// The client of Viber against our fake: what it cannot work with is not what Viber does.

/** The parts of `viber-bot` that are used: it has no types, and its address is a constant. */
interface ViberBot {
  readonly _client: { _url: string }
  getBotProfile(): Promise<{ readonly name: string }>
  setWebhook(url: string): Promise<unknown>
  sendMessage(to: { readonly id: string }, message: object): Promise<unknown>
  middleware(): RequestListener
  on(event: 'message', listener: (message: { readonly text: string; readonly token: string }) => void): void
}
interface ViberModule {
  readonly Bot: new (options: object) => ViberBot
  readonly Message: { readonly Text: new (text: string, keyboard?: object) => object }
}
const load = createRequire(import.meta.url)

function connect(fake: FakeViber, authToken = fake.config.token) {
  const module = load('viber-bot') as ViberModule
  const bot = new module.Bot({ authToken, name: 'Helper', avatar: 'https://example.org/a.png' })
  bot._client._url = fake.config.base_url
  return { bot, text: (text: string, keyboard?: object) => new module.Message.Text(text, keyboard) }
}

it('viber-bot sets its webhook, asks who it is, and sends a text with a keyboard', async () => {
  await using fake = await FakeViber.start()
  fake.setWebhook(async () => ({ status: 200, body: '' }))
  const { bot, text } = connect(fake)
  expect((await bot.getBotProfile()).name).toBe('Helper')
  await bot.setWebhook('https://svc.test/hook')
  const keyboard = { Type: 'keyboard', Buttons: [{ ActionType: 'reply', ActionBody: 'yes', Text: 'Yes' }] }
  await bot.sendMessage({ id: fake.person }, text('hello', keyboard))
  expect(fake.sent).toMatchObject([{ text: 'hello', buttons: [{ label: 'Yes', value: 'yes' }] }])
  await expect(connect(fake, 'wrong').bot.getBotProfile()).rejects.toMatchObject({ status: 2 })
  expect(fake.violations).toEqual([])
})

it('viber-bot accepts the signature of the fake, and reads the same number of 64 bits', async () => {
  await using fake = await FakeViber.start()
  const { bot } = connect(fake)
  const server = createServer(bot.middleware()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const received = Promise.withResolvers<{ readonly text: string; readonly token: string }>()
  bot.on('message', (message) => received.resolve(message))
  const token = '4912661846655238145'
  const { body, headers } = fake.signed(fake.message(token, { text: 'Grüße' }))
  // This client looks for the signature in the address: it asks for the header by a name that no request has.
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/?sig=${headers['x-viber-content-signature']}`
  expect((await fetch(address, { method: 'POST', headers, body: Buffer.from(body) })).status).toBe(200)
  expect(await received.promise).toMatchObject({ text: 'Grüße', token })
  server.close()
  server.closeAllConnections()
})
