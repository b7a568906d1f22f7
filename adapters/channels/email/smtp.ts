import type { Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { toTlsOptions } from 'svc/channels'
import type { OutboundMessage, SentMessage } from 'svc/channels'
import { UpstreamFailure } from 'svc/sdk'
import { ADDRESS } from './config.ts'
import type { Link } from './config.ts'
import { encodeMail, messageIdOf } from './encode.ts'
import { smtpFailure } from './errors.ts'

const ANSWER_MS = 30_000

/** Sends mail, with a connection for each. */
export async function sendMail(link: Link, message: OutboundMessage): Promise<SentMessage> {
  const { config } = link
  if (!ADDRESS.test(message.to.chatId))
    throw new UpstreamFailure('email', `"${message.to.chatId}" is not a mail address`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  const mail = await encodeMail(message, config)
  await withTransport(link, (transport) => transport.sendMail(mail))
  return { id: messageIdOf(message, config) }
}

/** Signs in and sends nothing. */
export async function verifySmtp(link: Link): Promise<void> {
  await withTransport(link, (transport) => transport.verify())
}

async function withTransport(
  link: Link,
  use: (transport: ReturnType<typeof createTransport>) => Promise<unknown>,
): Promise<void> {
  const { config } = link
  const { hostname: host, port: given, protocol } = new URL(config.smtp_url)
  const isSecure = protocol === 'smtps:'
  const port = Number(given) || (isSecure ? 465 : 587)
  const connection = await link.connect({ host, port, ...(isSecure && { tls: toTlsOptions(config) }) })
  const transport = createTransport({
    // It opens no connection of its own, and encrypts this one where it is not encrypted yet.
    connection: connection as Socket,
    host,
    port,
    secure: isSecure,
    secured: isSecure,
    requireTLS: true,
    tls: { ...(config.ca !== undefined && { ca: config.ca }), rejectUnauthorized: config.verify_certificate },
    auth: {
      user: config.smtp_username ?? config.username ?? config.address,
      pass: config.smtp_password ?? config.token,
    },
    greetingTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    logger: false,
  })
  try {
    await use(transport)
  } catch (error) {
    throw smtpFailure(error, host)
  } finally {
    transport.close()
    connection.destroy()
  }
}
