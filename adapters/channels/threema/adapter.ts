import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { ThreemaApi } from './api.ts'
import { BoxKey } from './box.ts'
import { ThreemaConfig } from './config.ts'
import { MAX_TEXT_BYTES } from './encode.ts'
import { MAX_FILE_BYTES, readFile } from './file.ts'
import { ThreemaSender } from './sender.ts'
import { answerWebhook } from './webhook.ts'

type Link = ChannelLink<ThreemaConfig>

async function open(link: Link): Promise<ChannelConnection> {
  const api = new ThreemaApi(link)
  const key = new BoxKey(link.config.private_key)
  await checkKey(link, api, key)
  const background = waitForEnd(link)
  const sender = new ThreemaSender(api, key)
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    readAttachment: async (reference, signal) => readFile(api, reference, signal),
    webhook: (request) => answerWebhook(request, { link, api, key }),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** With another key than the one that is registered nobody could read what the bot sends, nor the bot what others do. */
async function checkKey(link: Link, api: ThreemaApi, key: BoxKey): Promise<void> {
  const registered = await api.publicKey(link.config.threema_id)
  if (Buffer.from(registered).equals(key.publicKey)) return
  throw new UpstreamFailure('threema', `threema: private_key is not the key of ${link.config.threema_id}`, {
    reason: 'auth',
    retry: 'never',
  })
}

async function probe(link: Link): Promise<{ readonly account: string }> {
  const api = new ThreemaApi(link)
  await checkKey(link, api, new BoxKey(link.config.private_key))
  return { account: `${link.config.threema_id} (${await api.credits()} credits)` }
}

export default defineAdapter({
  config: ThreemaConfig,
  capabilities: {
    // *bold*, _italic_ and ~struck~; other signs are shown as they are.
    dialect: 'xmpp',
    maxLength: MAX_TEXT_BYTES,
    lengthUnit: 'bytes',
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: MAX_FILE_BYTES },
    // Another attempt has the same nonce, and apps drop what has a nonce that they know.
    idempotentSend: true,
    rate: { overall: { perSecond: 5, burst: 10 } },
  },
  open,
  probe,
})
