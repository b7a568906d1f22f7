import * as v from 'valibot'
import { defineAdapter, endOf, pause, runInBackground } from 'svc/channels'
import type { Background, ChannelConnection, ChannelLink } from 'svc/channels'
import { MAX_BYTES, WebexApi } from './api.ts'
import { WebexConfig } from './config.ts'
import { WebexEvents } from './events.ts'
import { Reference } from './wire.ts'
import { registerWebhooks } from './webhooks.ts'

/** More often than `silenceMs` of the adapter. */
const CHECK_MS = 300_000

async function open(link: ChannelLink<WebexConfig>): Promise<ChannelConnection> {
  const api = new WebexApi(link)
  const events = new WebexEvents(link, api, await api.me())
  await events.begin()
  // Before the past is read, so that nothing falls between the two: what is in both is dropped as a duplicate. What is
  // told before the connection is open is refused, and Webex does not tell it again.
  await registerWebhooks(api, link.config)
  const background = keepWebhooks(link, api, events)
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent) => api.delete(sent.id),
    readAttachment: (reference, signal) => api.readFile(v.parse(Reference, reference).url, signal),
    webhook: (request) => events.answer(request),
    async [Symbol.asyncDispose]() {
      await background[Symbol.asyncDispose]()
      await events.flush()
    },
  }
}

/** Ends with the first notification that could not be dealt with: the next connection reads what it was about. */
function keepWebhooks(link: ChannelLink<WebexConfig>, api: WebexApi, events: WebexEvents): Background {
  return runInBackground(link, async (signal) => {
    await events.catchUp(signal)
    const failure = events.failed.then((error) => ({ error }))
    for (;;) {
      const outcome = await Promise.race([failure, pause(link, CHECK_MS, signal)])
      if (typeof outcome === 'object') return { ...endOf(outcome.error), retry: 'later' }
      if (!outcome) return undefined
      await registerWebhooks(api, link.config)
      link.heard()
    }
  })
}

export default defineAdapter({
  config: WebexConfig,
  capabilities: {
    dialect: 'markdown',
    maxLength: MAX_BYTES,
    lengthUnit: 'bytes',
    // Webex takes ten edits of a message.
    edit: { minIntervalMs: 8000 },
    threads: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 100_000_000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 5, burst: 10 } },
  },
  // Two checks of the webhooks.
  silenceMs: 700_000,
  open,
  probe: async (link) => {
    const { displayName, id } = await new WebexApi(link).me()
    return { account: displayName || id }
  },
})
