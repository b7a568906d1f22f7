import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { MastodonApi } from './api.ts'
import { MastodonConfig } from './config.ts'
import { MastodonEvents } from './events.ts'
import { MastodonSender } from './sender.ts'
import { MastodonStream } from './stream.ts'
import type { Instance } from './wire.ts'

type Link = ChannelLink<MastodonConfig>
const Reference = v.object({ url: v.pipe(v.string(), v.regex(/^https?:\/\//i)) })
/** Of a server that does not describe itself. */
const UNKNOWN: Instance = { domain: '', configuration: { urls: {} } }

async function open(link: Link): Promise<ChannelConnection> {
  const api = new MastodonApi(link)
  const bot = await api.me()
  const instance = await describeInstance(api)
  const events = new MastodonEvents(link, api, bot, instance)
  const sender = new MastodonSender(link, api, instance)
  const stream = new MastodonStream(link, events)
  await stream.open(streamingAddress(link.config, instance))
  return {
    closed: stream.closed,
    send: async (message) => {
      const sent = await sender.send(message)
      events.noteOwnPost(sent.id, message.to.threadId)
      return sent
    },
    delete: (sent) => api.delete(sent.id),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    [Symbol.asyncDispose]: () => stream.close(),
  }
}

async function describeInstance(api: MastodonApi): Promise<Instance> {
  try {
    return await api.instance()
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
    return UNKNOWN
  }
}

function streamingAddress({ base_url: base, streaming_url: given }: MastodonConfig, instance: Instance): string {
  const named = given ?? instance.configuration.urls.streaming ?? ''
  const own = base.replace(/^http/i, 'ws')
  // The token is sent there: encrypted, unless the instance itself is not.
  return /^wss:\/\//i.test(named) || (/^ws:\/\//i.test(named) && /^ws:\/\//i.test(own)) ? named : own
}

export default defineAdapter({
  config: MastodonConfig,
  capabilities: {
    dialect: 'plain',
    // 500, without the mention of whoever is answered.
    maxLength: 450,
    lengthUnit: 'graphemes',
    threads: true,
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: 16_000_000 },
    idempotentSend: true,
    isPublic: true,
    // 300 requests in five minutes, those that read included.
    rate: { overall: { perSecond: 0.5, burst: 30 } },
  },
  // Three pings of the server.
  silenceMs: 100_000,
  open,
  probe: async (link) => {
    const { acct } = await new MastodonApi(link).me()
    return { account: `@${acct}@${new URL(link.config.base_url).host}` }
  },
})
