import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter, RecentMap, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink, InboundMessage } from 'svc/channels'
import { TeamsApi } from './api.ts'
import { TeamsConfig } from './config.ts'
import { decodeActivity } from './decode.ts'
import { isServiceUrl } from './service-url.ts'
import { signingKeys } from './signing-keys.ts'
import { answerWebhook } from './webhook.ts'
import type { Activity } from './wire.ts'

/** Files that were announced, and not read yet. */
const MAX_ADDRESSES = 1000
const Reference = v.union([v.object({ image: v.string() }), v.object({ file: v.string() })])

async function open(link: ChannelLink<TeamsConfig>): Promise<ChannelConnection> {
  const api = new TeamsApi(link)
  await api.authorize()
  const addresses = new RecentMap<string, string>(MAX_ADDRESSES)
  const background = waitForEnd(link)
  const decode = (activity: Activity): InboundMessage | undefined => {
    const keepAddress = (key: string, address: string): void => addresses.set(key, address)
    const message = decodeActivity(activity, { appId: link.config.app_id, keepAddress })
    const { serviceUrl } = activity
    if (!message || !isServiceUrl(serviceUrl, link.config)) return message
    api.remember(message.chat.id, serviceUrl)
    return { ...message, replyContext: { serviceUrl } }
  }
  const keys = signingKeys(link)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(to, sent.id),
    typing: (to) => api.typing(to),
    react: (to, messageId, emoji) => api.react(to, messageId, emoji),
    async readAttachment(raw, signal) {
      const reference = v.parse(Reference, raw)
      if ('image' in reference) return api.readImage(reference.image, signal)
      const address = addresses.get(reference.file)
      if (address !== undefined) return api.readFile(address, signal)
      throw new UpstreamFailure('teams', 'The address of the file is no longer known: it held for some minutes', {
        reason: 'not_found',
        retry: 'never',
      })
    },
    webhook: (request) => answerWebhook({ link, keys, decode }, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: TeamsConfig,
  capabilities: {
    dialect: 'markdown',
    // A message may have about 100 KB in all, in UTF-16.
    maxLength: 20_000,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 1500 },
    typing: { repeatMs: 4000 },
    threads: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: false, maxBytes: 30_000_000 },
    idempotentSend: false,
    // 7 in a second, 60 in half a minute and 1,800 in an hour to one conversation; 50 in a second to one tenant.
    rate: { perChat: { perSecond: 0.5, burst: 7 }, overall: { perSecond: 50, burst: 50 } },
  },
  open,
  probe: async (link) => {
    await new TeamsApi(link).authorize()
    return { account: `the bot ${link.config.app_id}` }
  },
})
