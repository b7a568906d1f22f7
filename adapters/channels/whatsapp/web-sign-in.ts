import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { ChannelLink, QrStep } from 'svc/channels'
import { loadBaileys } from './baileys.ts'
import type { ConnectionUpdate, LoadBaileys } from './baileys.ts'
import type { WhatsAppConfig } from './config.ts'
import { WebSession } from './web-session.ts'

/** WhatsApp shows a QR code for so long before it sends the next one. */
const QR_MS = 20_000
/** After the scan WhatsApp closes the connection once, and expects the next one. */
const RESTART_REQUIRED = 515

type Link = ChannelLink<WhatsAppConfig>

/** Links a phone: `pending` with each new code, `scanned`, and `authenticated` when the credentials are stored. */
export async function* signInWeb(link: Link, load: LoadBaileys = loadBaileys): AsyncGenerator<QrStep> {
  if (link.config.mode !== 'web')
    throw new Refusal('conflict', 'WhatsApp is in mode "cloud": set mode = "web" to link a phone')
  const session = await WebSession.load(await load(), link.secrets)
  const isRestarted = yield* follow(link, session)
  if (isRestarted && (yield* follow(link, session))) throw notScanned()
}

/** The steps of one connection. Returns whether WhatsApp wants another one. */
async function* follow(link: Link, session: WebSession): AsyncGenerator<QrStep, boolean> {
  const socket = session.connect()
  try {
    for await (const update of updatesOf(socket.ev, link.signal)) {
      yield* stepsOf(update, link.now())
      if (update.connection === 'close') return closeOf(update)
      if (update.connection === 'open') break
    }
    await session.flush()
    yield { status: 'authenticated' }
    return false
  } finally {
    socket.end()
    await session.flush()
  }
}

function* stepsOf({ qr, isNewLogin }: ConnectionUpdate, now: number): Generator<QrStep> {
  if (qr !== undefined) yield { status: 'pending', payload: qr, expiresAt: new Date(now + QR_MS).toISOString() }
  if (isNewLogin) yield { status: 'scanned' }
}

/** Throws unless WhatsApp only wants another connection. */
function closeOf({ lastDisconnect }: ConnectionUpdate): true {
  if (lastDisconnect?.error?.output?.statusCode === RESTART_REQUIRED) return true
  throw notScanned()
}

/** The updates of a connection in order. Rejects when the signal aborts. */
async function* updatesOf(
  events: ReturnType<WebSession['connect']>['ev'],
  signal: AbortSignal,
): AsyncGenerator<ConnectionUpdate> {
  const waiting: ConnectionUpdate[] = []
  let wake = Promise.withResolvers<void>()
  events.on('connection.update', (update) => {
    waiting.push(update)
    wake.resolve()
  })
  signal.addEventListener('abort', () => wake.resolve(), { once: true })
  while (true) {
    signal.throwIfAborted()
    const update = waiting.shift()
    if (update) yield update
    else {
      await wake.promise
      wake = Promise.withResolvers()
    }
  }
}

function notScanned(): UpstreamFailure {
  return new UpstreamFailure('whatsapp', 'whatsapp: the QR code was not scanned in time, or the phone refused', {
    reason: 'auth',
    retry: 'never',
  })
}
