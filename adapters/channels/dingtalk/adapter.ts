import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { defineAdapter, pause, pollInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { DingTalkApi } from './api.ts'
import { DingTalkConfig, robotOf } from './config.ts'
import { receiveMessage } from './messages.ts'
import { Sessions } from './sessions.ts'
import { DingTalkStream } from './stream.ts'
import { answerWebhook } from './webhook.ts'

type Link = ChannelLink<DingTalkConfig>
type Receiving = Pick<ChannelConnection, 'closed' | typeof Symbol.asyncDispose>

const CHECK_MS = 60_000
const Reference = v.object({ code: v.string() })

async function open(link: Link): Promise<ChannelConnection> {
  const api = new DingTalkApi(link)
  const sessions = new Sessions(link)
  const receive = (message: unknown): Promise<void> => receiveMessage(link, sessions, message)
  await api.checkCredentials()
  const receiving = await listen(link, api, receive)
  const { mode, token } = link.config
  return {
    closed: receiving.closed,
    send: (message) => api.send(message, sessions),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).code, signal),
    webhook: async (request) => {
      if (mode !== 'webhook') throw new Refusal('unauthorized', 'This channel receives in Stream mode')
      return answerWebhook(request, token, link.now(), receive)
    },
    [Symbol.asyncDispose]: () => receiving[Symbol.asyncDispose](),
  }
}

/** With the webhook, whether the credentials still hold is all there is to hear. */
async function listen(link: Link, api: DingTalkApi, receive: (message: unknown) => Promise<void>): Promise<Receiving> {
  if (link.config.mode === 'webhook')
    return pollInBackground(link, async (signal) => {
      if (await pause(link, CHECK_MS, signal)) await api.checkCredentials()
    })
  const stream = new DingTalkStream(link, receive)
  await stream.open(await api.endpoint())
  return { closed: stream.closed, [Symbol.asyncDispose]: () => stream.close() }
}

export default defineAdapter({
  config: DingTalkConfig,
  capabilities: {
    dialect: 'markdown',
    // A request may have 20,000 bytes, with what JSON adds to the text.
    maxLength: 10_000,
    lengthUnit: 'bytes',
    attachments: { inbound: true, outbound: false, maxBytes: 20_000_000 },
    idempotentSend: false,
    // 20 messages a minute in one group.
    rate: { perChat: { perSecond: 0.33, burst: 10 }, overall: { perSecond: 20, burst: 20 } },
  },
  // Three signs of life.
  silenceMs: 90_000,
  open,
  probe: async (link) => {
    await new DingTalkApi(link).checkCredentials()
    return { account: robotOf(link.config) }
  },
})
