import * as v from 'valibot'
import { defineAdapter, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { FlockApi } from './api.ts'
import { FlockConfig } from './config.ts'
import { answerWebhook } from './webhook.ts'

const Reference = v.object({ url: v.pipe(v.string(), v.regex(/^https?:\/\//i)) })

async function open(link: ChannelLink<FlockConfig>): Promise<ChannelConnection> {
  const api = new FlockApi(link)
  await api.check()
  const background = waitForEnd(link)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    readAttachment: async (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    webhook: (request) => answerWebhook(link, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: FlockConfig,
  capabilities: {
    dialect: 'plain',
    // Flock documents no limit.
    maxLength: 4096,
    lengthUnit: 'utf16',
    attachments: { inbound: true, outbound: false, maxBytes: 100_000_000 },
    idempotentSend: false,
    // Flock documents that there are limits, and not which.
    rate: { perChat: { perSecond: 1, burst: 5 }, overall: { perSecond: 5, burst: 10 } },
  },
  open,
  probe: async (link) => {
    await new FlockApi(link).check()
    return { account: `the bot of the app ${link.config.app_id}` }
  },
})
