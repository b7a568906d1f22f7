import { UpstreamFailure } from 'svc/sdk'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import { NostrConfig } from './config.ts'
import { MAX_FILE_BYTES, readFile } from './file.ts'
import { Identity, publicKeyOf } from './identity.ts'
import { Inbox } from './inbox.ts'
import { RelayListener } from './listener.ts'
import { Relay } from './relay.ts'
import { NostrSender } from './sender.ts'
import { KIND } from './wire.ts'

type Link = ChannelLink<NostrConfig>

async function open(link: Link): Promise<ChannelConnection> {
  const identity = new Identity(link.config.token)
  const inbox = new Inbox(link, identity)
  const listener = new RelayListener(link, identity, inbox)
  const background = await listener.open()
  const sender = new NostrSender({ link, identity, listener, inbox })
  if (link.config.announce) await sender.announce()
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    readAttachment: async (reference, signal) => readFile(link, reference, signal),
    warnings: () => listener.warnings(),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** One relay that takes the bot is enough. */
async function probe(link: Link): Promise<{ readonly account: string }> {
  const identity = new Identity(link.config.token)
  const failures: unknown[] = []
  for (const url of link.config.relays)
    try {
      await probeRelay(link, identity, url)
      return { account: identity.npub }
    } catch (error) {
      link.signal.throwIfAborted()
      failures.push(error)
    }
  throw failures.find((error) => error instanceof UpstreamFailure && error.retry === 'later') ?? failures[0]
}

async function probeRelay(link: Link, identity: Identity, url: string): Promise<void> {
  const relay = await Relay.open(link, identity, url, true)
  try {
    await relay.query({ kinds: [KIND.wrap], '#p': [identity.publicKey], limit: 1 })
    await relay.authenticate()
  } finally {
    await relay.close()
  }
}

export default defineAdapter({
  config: NostrConfig,
  capabilities: {
    dialect: 'plain',
    // Encrypted twice, a text becomes some four times as long, and many relays take events of 64 KiB.
    maxLength: 4096,
    lengthUnit: 'characters',
    replies: true,
    attachments: { inbound: true, outbound: false, maxBytes: MAX_FILE_BYTES },
    // The id of a message is the same on every attempt, and apps show it once.
    idempotentSend: true,
    rate: { perChat: { perSecond: 1, burst: 5 }, overall: { perSecond: 5, burst: 20 } },
  },
  // Three pings.
  silenceMs: 100_000,
  matchesSender: (entry, { id }) => publicKeyOf(entry) === id,
  open,
  probe,
})
