import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { TwistApi } from './api.ts'
import { TwistConfig } from './config.ts'
import { TwistEvents } from './events.ts'

const Reference = v.object({ url: v.pipe(v.string(), v.regex(/^https?:\/\//i)) })

async function open(link: ChannelLink<TwistConfig>): Promise<ChannelConnection> {
  const api = new TwistApi(link)
  const bot = await api.me()
  const workspace = Number(link.config.workspace_id ?? bot.default_workspace ?? NaN)
  if (Number.isNaN(workspace))
    throw new UpstreamFailure('twist', 'The account has no default workspace: set workspace_id', {
      reason: 'invalid_request',
      retry: 'never',
    })
  const background = await new TwistEvents(link, api, bot, workspace).open()
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    react: (_, messageId, emoji) => api.react(messageId, emoji),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export default defineAdapter({
  config: TwistConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: 10_000,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 3000 },
    threads: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 25_000_000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 1, burst: 10 } },
  },
  // Several questions that were not answered.
  silenceMs: 90_000,
  open,
  probe: async (link) => ({ account: (await new TwistApi(link).me()).name }),
})
