import { runInBackground } from 'svc/channels'
import type { ChannelConnection, JsonObject } from 'svc/channels'
import { UpstreamFailure } from 'svc/sdk'
import type { Link } from './config.ts'
import { parseMail } from './decode.ts'
import { Mailbox } from './mailbox.ts'
import { sendMail, verifySmtp } from './smtp.ts'

export async function openEmail(link: Link): Promise<ChannelConnection> {
  const mailbox = await Mailbox.open(link)
  const background = runInBackground(link, async (signal) => {
    const end = (): void => mailbox.end()
    signal.addEventListener('abort', end, { once: true })
    try {
      while (!signal.aborted) {
        await mailbox.receive()
        await mailbox.wait()
      }
    } finally {
      signal.removeEventListener('abort', end)
      mailbox.end()
    }
  })
  return {
    closed: background.closed,
    send: (message) => sendMail(link, message),
    readAttachment: (reference) => readAttachment(mailbox, reference),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeEmail(link: Link): Promise<{ readonly account: string }> {
  await using _mailbox = await Mailbox.open(link)
  await verifySmtp(link)
  return { account: link.config.address }
}

async function readAttachment(mailbox: Mailbox, reference: JsonObject): Promise<AsyncIterable<Uint8Array>> {
  const { uidValidity, uid, index } = reference
  const source = await mailbox.source({ uidValidity: String(uidValidity), uid: Number(uid) })
  const content = source && (await parseMail(source)).attachments[Number(index)]?.content
  if (content === undefined)
    throw new UpstreamFailure('email', 'the mail with this file is not there any more', {
      reason: 'not_found',
      retry: 'never',
    })
  return (async function* () {
    yield typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
  })()
}
