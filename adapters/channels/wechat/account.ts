import * as v from 'valibot'
import { pause, runInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { AccountApi } from './account-api.ts'
import { AccountSender } from './account-sender.ts'
import { answerWebhook } from './account-webhook.ts'
import { accountFields } from './config.ts'
import type { WeChatConfig } from './config.ts'

/** More often than `silenceMs` of the adapter. */
const CHECK_MS = 90_000
const Reference = v.object({ media: v.pipe(v.string(), v.minLength(1)) })

type Link = ChannelLink<WeChatConfig>

export async function openAccount(link: Link): Promise<ChannelConnection> {
  const api = new AccountApi(link)
  await api.token()
  const sender = new AccountSender(api)
  const background = runInBackground(link, async (signal) => {
    while (await pause(link, CHECK_MS, signal)) {
      // Asks for another one when it ends, and so finds out that the secret was changed.
      await api.token()
      link.heard()
    }
  })
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    typing: async ({ chatId }) => void (await api.typing(chatId)),
    readAttachment: (reference, signal) => api.download(v.parse(Reference, reference).media, signal),
    webhook: (request) => answerWebhook(request, link),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeAccount(link: Link): Promise<{ readonly account: string }> {
  await new AccountApi(link).token()
  return { account: accountFields(link.config).appId }
}
