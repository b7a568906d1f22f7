import * as v from 'valibot'
import { pause, pollInBackground } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { AppApi } from './app-api.ts'
import { decodeAppMessage } from './app-decode.ts'
import { answerCallback } from './callback.ts'
import type { WeComConfig } from './config.ts'
import type { AppMessage } from './wire.ts'

type Link = ChannelLink<WeComConfig>

const CHECK_MS = 60_000
const Reference = v.object({ media: v.string() })

export async function openApp(link: Link): Promise<ChannelConnection> {
  const api = new AppApi(link)
  await api.checkCredentials()
  // Whether the credentials still hold is all there is to hear.
  const background = pollInBackground(link, async (signal) => {
    if (await pause(link, CHECK_MS, signal)) await api.checkCredentials()
  })
  const { callback_token: token = '', encoding_aes_key: encodingAesKey = '', corp_id: corpId = '' } = link.config
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    readAttachment: (reference, signal) => api.readMedia(v.parse(Reference, reference).media, signal),
    webhook: (request) =>
      answerCallback(request, { token, encodingAesKey, corpId }, link.now(), (message) => receive(link, message)),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeApp(link: Link): Promise<{ readonly account: string }> {
  await new AppApi(link).checkCredentials()
  const { corp_id: corp, agent_id: agent } = link.config
  return { account: `${agent} of ${corp}` }
}

async function receive(link: Link, message: AppMessage | undefined): Promise<void> {
  if (!message) {
    link.log.warn('WeCom sent a message in a form that cannot be read')
    return
  }
  const { agent_id: agent, corp_id: corp } = link.config
  if (message.ToUserName !== corp || (message.AgentID != null && message.AgentID !== String(agent))) {
    link.log.warn('WeCom sent a message to another application', { agent: message.AgentID })
    return
  }
  const decoded = decodeAppMessage(message)
  if (decoded) await link.receive(decoded)
}
