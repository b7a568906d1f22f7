import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, PartialSends, trimSlashes } from 'svc/channels'
import type {
  ApiAnswer,
  ApiError,
  ChannelConnection,
  ChannelLink,
  JsonObject,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type { NtfyConfig } from './config.ts'
import { encodeCredentials, encodeFilePath, encodeText } from './encode.ts'
import { startStream } from './stream.ts'
import { Access, Failure, Published } from './wire.ts'

type Link = ChannelLink<NtfyConfig>

/** What a quota of a day needs at the least. */
const QUOTA_PAUSE_SECS = 3600
const QUOTA_CODES = new Set([42_905, 42_908])

export async function openNtfy(link: Link): Promise<ChannelConnection> {
  const base = trimSlashes(link.config.base_url)
  const client = clientOf(link)
  await checkAccess(link, client, base)
  const background = await startStream(link, client, base)
  const partial = new PartialSends()
  return {
    closed: background.closed,
    send: (message) => publish(link, client, base, partial, message),
    readAttachment: (reference, signal) => readFile(client, base, reference, signal),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeNtfy(link: Link): Promise<{ readonly account: string }> {
  const base = trimSlashes(link.config.base_url)
  await checkAccess(link, clientOf(link), base)
  return { account: `${new URL(base).host}/${link.config.topic}` }
}

function clientOf(link: Link): ApiClient {
  const { token } = link.config
  const headers = encodeCredentials(token)
  const credentials = headers['authorization']?.split(' ')[1]
  return new ApiClient(link, {
    system: 'ntfy',
    authenticate: () => headers,
    findError,
    secrets: [token, credentials].filter((text) => text !== undefined),
    refuseRedirects: true,
  })
}

async function checkAccess({ config }: Link, client: ApiClient, base: string): Promise<void> {
  await client.json(`${base}/${config.topic}/auth`, {}, Access, 'the answer about access')
}

async function publish(
  link: Link,
  client: ApiClient,
  base: string,
  partial: PartialSends,
  message: OutboundMessage,
): Promise<SentMessage> {
  const { topic, reply_topic = topic } = link.config
  const chatId = message.to.chatId === topic ? reply_topic : message.to.chatId
  const rerouted = { ...message, to: { ...message.to, chatId } }
  const { attachments } = message
  const steps = attachments.map((attachment, index) => async () => {
    const text = index === 0 ? message.text : ''
    return publishFile(client, base, { ...rerouted, text }, attachment)
  })
  if (steps.length === 0)
    steps.push(() => client.json(`${base}/`, { json: encodeText(rerouted) }, Published, 'the published message'))
  return partial.send(message.id, steps)
}

async function publishFile(
  client: ApiClient,
  base: string,
  message: OutboundMessage,
  attachment: OutboundAttachment,
): Promise<SentMessage> {
  const url = base + encodeFilePath(message, attachment)
  const body = await attachment.bytes()
  const headers = { 'content-type': attachment.mime }
  return client.json(url, { method: 'PUT', body, headers, timeoutMs: 120_000 }, Published, 'the published file')
}

/** Files are read from the ntfy server only: whoever writes to the topic may name any other address. */
async function readFile(
  client: ApiClient,
  base: string,
  reference: JsonObject,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const url = URL.parse(String(reference['url']))
  if (url?.origin !== new URL(base).origin)
    throw new UpstreamFailure('ntfy', 'ntfy: the file is on another server than the topic, and is not read', {
      reason: 'invalid_request',
      retry: 'never',
    })
  return (await client.open(url.href, { signal, streamIdleMs: 30_000 })).chunks()
}

function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { code, http, error } = parsed.output
  // 403 is for the topic, and there is one topic.
  if (http === 401 || http === 403) return { message: error, reason: 'auth' }
  return { message: error, retryAfterSecs: QUOTA_CODES.has(code) ? QUOTA_PAUSE_SECS : undefined }
}
