import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { answerGraphRequest, waitForEnd } from 'svc/channels'
import type { ChannelConnection, ChannelLink, JsonObject, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { WhatsAppConfig } from './config.ts'
import { decodeMessage } from './decode.ts'
import { CloudApi } from './cloud-api.ts'
import { CloudSender } from './cloud-sender.ts'
import { ChangeValue, MediaAddress, Message, Notification, Phone } from './wire.ts'

type Link = ChannelLink<WhatsAppConfig>

export async function openCloud(link: Link): Promise<ChannelConnection> {
  const api = new CloudApi(link)
  await readPhone(api)
  const background = waitForEnd(link)
  const sender = new CloudSender(api)
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    typing: (to) => sender.typing(to),
    react: (to, id, emoji) => sender.react(to, id, emoji),
    readAttachment: (reference, signal) => readMedia(link, api, reference, signal),
    webhook: (request) => receiveRequest(link, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeCloud(link: Link): Promise<{ readonly account: string }> {
  const { display_phone_number, verified_name } = await readPhone(new CloudApi(link))
  return { account: verified_name ? `${verified_name} (${display_phone_number})` : display_phone_number }
}

function readPhone(api: CloudApi) {
  return api.call(api.phonePath('?fields=display_phone_number,verified_name'), {}, Phone)
}

function receiveRequest(link: Link, request: WebhookRequest): Promise<WebhookAnswer> {
  const { verify_token: verifyToken = '', app_secret: appSecret = '' } = link.config
  return answerGraphRequest(request, { verifyToken, appSecret }, async (notification) => {
    for (const value of readValues(notification)) await receiveValue(link, value)
  })
}

/** The parts of a notification that are about messages. */
function readValues(notification: unknown): readonly ChangeValue[] {
  const parsed = v.safeParse(Notification, notification)
  if (!parsed.success) return []
  return parsed.output.entry
    .flatMap(({ changes }) => changes)
    .filter(({ field }) => field === 'messages')
    .flatMap(({ value }) => {
      const result = v.safeParse(ChangeValue, value)
      return result.success ? [result.output] : []
    })
}

async function receiveValue(link: Link, value: ChangeValue): Promise<void> {
  // One app may serve several numbers, each of which is an account here.
  if (value.metadata.phone_number_id !== link.config.phone_number_id) return
  for (const { status, errors } of value.statuses)
    if (status === 'failed') link.log.warn('whatsapp: a message was not delivered', { errors })
  for (const raw of value.messages) {
    const parsed = v.safeParse(Message, raw)
    if (!parsed.success) link.log.warn('whatsapp: a message in an unknown form was left out')
    const message = parsed.success ? decodeMessage(parsed.output, value.contacts) : undefined
    if (message) await link.receive(message)
  }
}

/** Media have an address for some minutes, which is read with the access token. */
async function readMedia(
  link: Link,
  api: CloudApi,
  reference: JsonObject,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { url } = await api.call(`/${encodeURIComponent(String(reference['id']))}`, { signal }, MediaAddress)
  const { hostname, origin } = new URL(url)
  const { base_url, download_hosts } = link.config
  const isMeta = /(?:^|\.)(?:fbsbx\.com|facebook\.com|whatsapp\.net)$/.test(hostname)
  if (!isMeta && origin !== new URL(base_url).origin && !download_hosts.includes(hostname))
    throw new UpstreamFailure('whatsapp', `whatsapp: media are not read from ${hostname} with the access token`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  return (await api.open(url, { signal, streamIdleMs: 30_000 })).chunks()
}
