import * as v from 'valibot'
import { readJson, SerialQueue } from 'svc/sdk'
import { ignoreMissing, runInBackground, within } from 'svc/channels'
import type {
  Background,
  ChannelConnection,
  Destination,
  OutboundMessage,
  SentMessage,
  StartProgram,
} from 'svc/channels'
import type { Link } from './config.ts'
import { reactionName } from './emoji.ts'
import { decodeId, encodeBody, encodeId } from './encode.ts'
import { keybaseFailure, signInFailure } from './errors.ts'
import { Keybase } from './program.ts'
import { KeybaseReceiver } from './receiver.ts'
import { Done, Sent, Status } from './wire.ts'

type Program = Awaited<ReturnType<StartProgram>>

const START_TRIES = 100
const START_PAUSE_MS = 200
const LISTEN_MS = 30_000
/** What `api-listen` says when it listens. */
const LISTENING = 'Listening for chat notifications'

export async function openKeybase(link: Link): Promise<ChannelConnection> {
  const keybase = new Keybase(link)
  const service = await signIn(link, keybase)
  try {
    return await KeybaseSession.open(link, keybase, service)
  } catch (error) {
    await service?.kill()
    throw error
  }
}

export async function probeKeybase(link: Link): Promise<{ readonly account: string }> {
  const service = await signIn(link, new Keybase(link))
  await service?.kill()
  return { account: link.config.username }
}

/** Uses the service of the folder, or starts one: it is returned then. */
async function signIn(link: Link, keybase: Keybase): Promise<Program | undefined> {
  const { username, token } = link.config
  if ((await signedIn(keybase)) === username) return undefined
  if (token === undefined)
    throw keybaseFailure(`keybase is not signed in as ${username}: set token to a paper key`, 'auth', 'never')
  const service = await keybase.start(['--enable-bot-lite-mode', 'service'], {})
  try {
    await waitForService(link, keybase, service)
    // Never an argument, which everybody on this machine can see.
    const { isSuccess, stderr } = await keybase.run(['oneshot', '--username', username], token)
    if (!isSuccess) throw signInFailure(stderr.replaceAll(token, '***'))
    if ((await signedIn(keybase)) !== username) throw keybaseFailure('keybase is not signed in', 'auth', 'never')
    return service
  } catch (error) {
    await service.kill()
    throw error
  }
}

/** Who is signed in; `undefined` without a service. */
async function signedIn(keybase: Keybase): Promise<string | undefined> {
  const { isSuccess, stdout } = await keybase.run(['status', '--json'])
  if (!isSuccess) return undefined
  const status = v.safeParse(Status, readJson(stdout))
  return status.success ? status.output.Username.toLowerCase() : ''
}

async function waitForService(link: Link, keybase: Keybase, service: Program): Promise<void> {
  const ended = service.ended.then(() => 'ended' as const)
  for (let attempt = 0; attempt < START_TRIES; attempt++) {
    if ((await signedIn(keybase)) !== undefined) return
    if ((await Promise.race([ended, link.sleep(START_PAUSE_MS)])) === 'ended') break
  }
  throw keybaseFailure('the service of Keybase does not start', 'server_error', 'later')
}

class KeybaseSession implements ChannelConnection {
  readonly closed: ChannelConnection['closed']
  readonly #keybase: Keybase
  readonly #receiver: KeybaseReceiver
  readonly #background: Background
  readonly #queue = new SerialQueue()

  static async open(link: Link, keybase: Keybase, service: Program | undefined): Promise<KeybaseSession> {
    const receiver = new KeybaseReceiver(link, keybase)
    const listening = Promise.withResolvers<void>()
    let words = ''
    const listener = await keybase.start(['--no-auto-fork', 'chat', 'api-listen'], {
      stdout: (bytes) => receiver.feed(bytes),
      stderr(text) {
        words = (words + text).slice(-LISTENING.length * 20)
        if (words.includes(LISTENING)) listening.resolve()
      },
    })
    const ended = listener.ended.then(() => {
      throw keybaseFailure('keybase does not listen any more', 'cut', 'later')
    })
    try {
      await within(LISTEN_MS, 'keybase', Promise.race([listening.promise, ended]))
      await receiver.catchUp()
    } catch (error) {
      await listener.kill()
      throw error
    }
    return new KeybaseSession(link, keybase, receiver, [listener, ...(service ? [service] : [])])
  }

  private constructor(link: Link, keybase: Keybase, receiver: KeybaseReceiver, programs: readonly Program[]) {
    this.#keybase = keybase
    this.#receiver = receiver
    this.#background = runInBackground(link, async (signal) => {
      const aborted = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => aborted.resolve(), { once: true })
      if (signal.aborted) aborted.resolve()
      try {
        await Promise.race([aborted.promise, receiver.failed.promise, ...programs.map(({ ended }) => ended)])
      } finally {
        await Promise.all(programs.map((program) => program.kill()))
        await receiver.end()
      }
      throw keybaseFailure('the program of Keybase ended', 'cut', 'later')
    })
    this.closed = this.#background.closed
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { chatId } = message.to
    return this.#queue.run(async () => {
      const options = {
        conversation_id: chatId,
        message: { body: encodeBody(message.text) },
        ...(message.replyTo !== undefined && { reply_to: decodeId(message.replyTo) }),
      }
      const { id } = await this.#keybase.call('send', options, Sent)
      const sent = { id: encodeId(chatId, id) }
      this.#receiver.noteOwn(sent.id)
      return sent
    })
  }
  async edit(sent: SentMessage, { to, text }: OutboundMessage): Promise<void> {
    await this.#change('edit', to, sent.id, { message: { body: encodeBody(text) } })
  }
  async delete(sent: SentMessage, to: Destination): Promise<void> {
    await ignoreMissing(this.#change('delete', to, sent.id, {}))
  }
  async react(to: Destination, messageId: string, emoji: string): Promise<void> {
    await this.#change('reaction', to, messageId, { message: { body: reactionName(emoji) } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#background[Symbol.asyncDispose]()
  }

  async #change(method: string, to: Destination, messageId: string, more: object): Promise<void> {
    const options = { conversation_id: to.chatId, message_id: decodeId(messageId), ...more }
    await this.#queue.run(() => this.#keybase.call(method, options, Done))
  }
}
