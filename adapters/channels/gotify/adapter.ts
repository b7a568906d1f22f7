import { defineAdapter, ignoreMissing } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { GotifyApi } from './api.ts'
import { GotifyConfig } from './config.ts'
import { GotifyStream } from './stream.ts'

async function open(link: ChannelLink<GotifyConfig>): Promise<ChannelConnection> {
  const api = new GotifyApi(link)
  await api.user()
  const stream = new GotifyStream(link, api)
  await stream.open()
  return {
    closed: stream.closed,
    send: (message) => api.send(message),
    delete: (sent) => ignoreMissing(api.delete(sent.id)),
    [Symbol.asyncDispose]: () => stream.close(),
  }
}

export default defineAdapter({
  config: GotifyConfig,
  capabilities: {
    dialect: 'markdown',
    // What a column of MySQL holds, one of the databases of the server.
    maxLength: 65_535,
    lengthUnit: 'bytes',
    idempotentSend: false,
    rate: { overall: { perSecond: 10, burst: 20 } },
  },
  // Two pings, which the server sends every 45 seconds.
  silenceMs: 100_000,
  open,
  probe: async (link) => ({ account: (await new GotifyApi(link).user()).name }),
})
