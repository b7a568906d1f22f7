import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { BotApi } from './bot-api.ts'
import { BotContexts } from './bot-contexts.ts'
import { BotMedia } from './bot-media.ts'
import { BotSender } from './bot-sender.ts'
import { readSession } from './bot-session.ts'
import { BotUpdates } from './bot-updates.ts'
import type { WeChatConfig } from './config.ts'

type Link = ChannelLink<WeChatConfig>

export async function openBot(link: Link): Promise<ChannelConnection> {
  const api = new BotApi(link, await readSession(link))
  await api.notifyStart()
  const contexts = new BotContexts(link)
  const media = new BotMedia(link, api)
  const sender = new BotSender({ link, api, contexts, media })
  const background = await new BotUpdates(link, api, contexts).open()
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    typing: (to) => sender.typing(to),
    readAttachment: async (reference, signal) => media.read(reference, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeBot(link: Link): Promise<{ readonly account: string }> {
  const session = await readSession(link)
  await new BotApi(link, session).notifyStart()
  return { account: session.bot }
}
