import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { DiscourseApi, MAX_CHARACTERS } from './api.ts'
import { DiscourseConfig } from './config.ts'
import { DiscoursePosts } from './posts.ts'
import { answerWebhook } from './webhook.ts'

const Reference = v.object({ file: v.pipe(v.string(), v.regex(/^[\w-][\w.-]{0,199}$/)) })

async function open(link: ChannelLink<DiscourseConfig>): Promise<ChannelConnection> {
  const api = new DiscourseApi(link)
  const posts = new DiscoursePosts(link, api, await api.me())
  const background = await posts.open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent, message),
    delete: (sent) => api.delete(sent),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).file, signal),
    webhook: (request) =>
      answerWebhook(request, link.config.webhook_secret, (post, isChange) => posts.look(post, isChange)),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: DiscourseConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: MAX_CHARACTERS,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 5000 },
    threads: true,
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: 4_000_000 },
    idempotentSend: true,
    isPublic: true,
    // 60 requests a minute, those that look for posts included.
    rate: { overall: { perSecond: 0.5, burst: 10 } },
  },
  // Two looks at the forum.
  silenceMs: 300_000,
  open,
  probe: async (link) => ({ account: `@${(await new DiscourseApi(link).me()).username}` }),
})
