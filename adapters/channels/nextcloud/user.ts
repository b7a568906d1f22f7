import * as v from 'valibot'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import type { NextcloudConfig } from './config.ts'
import { NextcloudEvents } from './events.ts'
import { NextcloudUserApi } from './user-api.ts'

type Link = ChannelLink<NextcloudConfig>
const Reference = v.object({ path: v.pipe(v.string(), v.regex(/^(?!(?:.{0,4096}\/)?\.{1,2}(?:\/|$))[^\0]{1,4096}$/)) })

/** An account of the server, which reads and writes as a person does. */
export async function openUser(link: Link): Promise<ChannelConnection> {
  const api = new NextcloudUserApi(link)
  const { id: userId } = await api.me()
  const background = await new NextcloudEvents(link, api, userId).open()
  return {
    closed: background.closed,
    send: (message) => api.send(message, userId),
    edit: (sent, message) => api.edit(sent.id, message),
    delete: (sent, to) => api.delete(sent.id, to.chatId),
    react: (to, messageId, emoji) => api.react(to.chatId, messageId, emoji),
    readAttachment: (reference, signal) => api.readFile(userId, v.parse(Reference, reference).path, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeUser(link: Link): Promise<{ readonly account: string }> {
  const { id } = await new NextcloudUserApi(link).me()
  return { account: `${id} on ${new URL(link.config.base_url).host}` }
}
