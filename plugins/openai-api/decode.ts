import { mediaTypeOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { imageTypes } from 'svc/providers'
import type { ResponseFormat } from 'svc/providers'
import type { CompletionBody, Message, Part } from './schema.ts'

export interface Image {
  readonly mime: string
  readonly base64: string
}
/** As a client gives it: its content, or where that can be fetched. */
type GivenImage = Pick<Image, 'base64'> | { readonly url: URL }
type Given = Omit<Said, 'images'> & { readonly images: readonly GivenImage[] }
interface GivenAsked extends Omit<Asked, 'history' | 'question'> {
  readonly history: readonly Given[]
  readonly question: Given
}
/** The bytes at an address. Throws `Refusal` when it may not be asked and `UpstreamFailure` when it does not answer. */
export type FetchImage = (url: URL) => Promise<Uint8Array>
const MAX_FETCHED_IMAGES = 16
/** One message of a conversation as both sides know it. */
export interface Said {
  readonly role: 'user' | 'assistant'
  readonly text: string
  readonly images: readonly Image[]
}
export interface Asked {
  /** The client's system messages. */
  readonly instructions: string
  /** What was said before the question. */
  readonly history: readonly Said[]
  readonly question: Said
}
const DATA_URL = /^data:image\/[a-z0-9.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/

/**
 * The same with the bytes of each picture, fetched where the message has an address. Throws `invalid_request` for a
 * picture that no model takes, that cannot be fetched, or that the configuration does not let it fetch.
 */
export async function withTrueImages(asked: GivenAsked, fetchImage: FetchImage | undefined): Promise<Asked> {
  const said = [asked.question, ...asked.history]
  if (said.flatMap(({ images }) => images).filter((image) => 'url' in image).length > MAX_FETCHED_IMAGES)
    throw badImage(`messages: at most ${MAX_FETCHED_IMAGES} pictures are fetched for a request; send data URLs`)
  const question = await trueImages(asked.question, fetchImage)
  const history: Said[] = []
  // One after the other: a request must not hold more in memory than it needs.
  for (const one of asked.history) history.push(await trueImages(one, fetchImage))
  return { ...asked, question, history }
}
async function trueImages(said: Given, fetchImage: FetchImage | undefined): Promise<Said> {
  const images: Image[] = []
  for (const image of said.images) {
    const bytes = 'url' in image ? await fetched(image.url, fetchImage) : Buffer.from(image.base64, 'base64')
    const mime = await mediaTypeOf(bytes)
    if (!imageTypes.has(mime)) throw badImage('messages: an image_url holds no PNG, JPEG, GIF or WebP picture')
    images.push({ mime, base64: 'url' in image ? Buffer.from(bytes).toString('base64') : image.base64 })
  }
  return { ...said, images }
}
async function fetched(url: URL, fetchImage: FetchImage | undefined): Promise<Uint8Array> {
  if (!fetchImage)
    throw badImage(
      'messages: an image_url must be a data URL with base64 content; ' +
        'addresses are fetched only with [plugins.openai-api] fetch_images = true in the configuration file',
    )
  try {
    return await fetchImage(url)
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof UpstreamFailure)) throw error
    throw badImage(`messages: the picture at ${url.origin} cannot be had: ${error.message}`)
  }
}

/**
 * The last message of the user is the question; messages after it are ignored. Throws `invalid_request` when there is
 * none.
 */
export function decodeMessages(messages: readonly Message[]): GivenAsked {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const last = messages[at]
  const question = last && decode('user', last)
  if (!question || (question.text.trim() === '' && question.images.length === 0)) {
    throw new Refusal('invalid_request', 'messages: there is no message of the user with content', {
      details: { code: 'missing_message', param: 'messages' },
    })
  }
  const instructions = messages
    .filter(({ role }) => role === 'system' || role === 'developer')
    .map((message) => decode('user', message).text)
    .filter((text) => text.trim() !== '')
    .join('\n\n')
  const history: Given[] = []
  for (const message of messages.slice(0, at)) {
    if (message.role === 'system' || message.role === 'developer') continue
    const said = toSaid(message)
    if (said.text.trim() !== '' || said.images.length > 0) history.push(said)
  }
  return { instructions, history, question }
}

/** What the client's own tools did is told in words: the agent has other tools. */
function toSaid(message: Message): Given {
  if (message.role === 'tool' || message.role === 'function')
    return { role: 'user', text: `[Result of a tool of the client: ${decode('user', message).text}]`, images: [] }
  if (message.role !== 'assistant') return decode('user', message)
  const { text } = decode('assistant', message)
  const calls = (message.tool_calls ?? []).flatMap(({ function: called }) =>
    called ? [`[Called a tool of the client: ${called.name}(${called.arguments})]`] : [],
  )
  return { role: 'assistant', text: [text, ...calls].filter((piece) => piece !== '').join('\n'), images: [] }
}

function decode(role: Said['role'], { content }: Message): Given {
  const parts: readonly Part[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
  return {
    role,
    text: parts
      .flatMap((part) => (part.type === 'text' ? [part.text] : part.type === 'refusal' ? [part.refusal] : []))
      .join('\n'),
    images:
      role === 'assistant'
        ? []
        : parts.flatMap((part) => (part.type === 'image_url' ? [toImage(part.image_url.url)] : [])),
  }
}

// Decision: an address that is not fetched is refused instead of dropped. The agent would answer about a picture it
// never saw.
function toImage(url: string): GivenImage {
  const [, base64] = url.match(DATA_URL) ?? []
  if (base64 !== undefined) return { base64 }
  const address = URL.parse(url)
  if (address?.protocol === 'https:') return { url: address }
  throw badImage('messages: an image_url must be a data URL with base64 content, or an https address')
}
function badImage(message: string): Refusal {
  return new Refusal('invalid_request', message, { details: { code: 'invalid_image_url', param: 'messages' } })
}

/**
 * Names the parts of the request that have no effect. Tools of the client are ignored: the agent calls its own. A
 * request that insists on a client's tool is refused, because no answer could satisfy it.
 */
export function decodeUnused(body: CompletionBody): readonly string[] {
  if (typeof body.n === 'number' && body.n !== 1)
    throw unsupported('n', 'n: one choice is given; ask again for another')
  const given = body.tools?.length ? 'tools' : body.functions?.length ? 'functions' : undefined
  if (given === undefined) return []
  const choice = body.tool_choice ?? body.function_call
  if (choice !== undefined && choice !== null && choice !== 'auto' && choice !== 'none')
    throw unsupported('tool_choice', 'tool_choice: tools of the client are not called here; the agent calls its own')
  return [`${given}: tools of the client are not called here; the agent calls its own`]
}
function unsupported(param: string, message: string): Refusal {
  return new Refusal('invalid_request', message, { details: { code: 'unsupported_parameter', param } })
}

export function decodeFormat({ response_format: format }: CompletionBody): ResponseFormat | undefined {
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json' }
  const { name, schema, strict } = format.json_schema
  return { type: 'json_schema', name, schema, ...(typeof strict === 'boolean' ? { strict } : {}) }
}
