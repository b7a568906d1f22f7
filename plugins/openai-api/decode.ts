import { mediaTypeOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { imageTypes } from 'svc/providers'
import type { ResponseFormat } from 'svc/providers'
import type { CompletionBody, Message, Part } from './schema.ts'

export interface Image {
  readonly mime: string
  readonly base64: string
}
/** As a client sends it: the content, or an address to fetch it from. */
type RawImage = Pick<Image, 'base64'> | { readonly url: URL }
type RawMessage = Omit<SpokenMessage, 'images'> & { readonly images: readonly RawImage[] }
interface RawConversation extends Omit<Conversation, 'history' | 'question'> {
  readonly history: readonly RawMessage[]
  readonly question: RawMessage
}
/**
 * The bytes at an address. Throws `Refusal` when it may not be called and `UpstreamFailure` when it does not answer.
 */
export type FetchImage = (url: URL) => Promise<Uint8Array>
const MAX_FETCHED_IMAGES = 16
/** One message of a conversation as both sides know it. */
export interface SpokenMessage {
  readonly role: 'user' | 'assistant'
  readonly text: string
  readonly images: readonly Image[]
}
export interface Conversation {
  /** The client's system messages. */
  readonly instructions: string
  /** The messages before the question. */
  readonly history: readonly SpokenMessage[]
  readonly question: SpokenMessage
}
const DATA_URL = /^data:image\/[a-z0-9.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/

/**
 * The conversation with the bytes of each picture, fetched where a message has an address. Throws `invalid_request` for
 * an unsupported picture, one that cannot be fetched, and one that the configuration does not allow to fetch.
 */
export async function loadImages(
  conversation: RawConversation,
  fetchImage: FetchImage | undefined,
): Promise<Conversation> {
  const messages = [conversation.question, ...conversation.history]
  if (messages.flatMap(({ images }) => images).filter((image) => 'url' in image).length > MAX_FETCHED_IMAGES)
    throw badImage(`messages: at most ${MAX_FETCHED_IMAGES} pictures are fetched for a request; send data URLs`)
  const question = await loadImagesOf(conversation.question, fetchImage)
  const history: SpokenMessage[] = []
  // One after the other: a request must not hold more in memory than it needs.
  for (const message of conversation.history) history.push(await loadImagesOf(message, fetchImage))
  return { ...conversation, question, history }
}
async function loadImagesOf(message: RawMessage, fetchImage: FetchImage | undefined): Promise<SpokenMessage> {
  const images: Image[] = []
  for (const image of message.images) {
    const bytes = 'url' in image ? await fetchOrRefuse(image.url, fetchImage) : Buffer.from(image.base64, 'base64')
    const mime = await mediaTypeOf(bytes)
    if (!imageTypes.has(mime)) throw badImage('messages: an image_url holds no PNG, JPEG, GIF or WebP picture')
    images.push({ mime, base64: 'url' in image ? Buffer.from(bytes).toString('base64') : image.base64 })
  }
  return { ...message, images }
}
async function fetchOrRefuse(url: URL, fetchImage: FetchImage | undefined): Promise<Uint8Array> {
  if (!fetchImage)
    throw badImage(
      'messages: an image_url must be a data URL with base64 content; ' +
        'addresses are fetched only with [plugins.openai-api] fetch_images = true in the configuration file',
    )
  try {
    return await fetchImage(url)
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof UpstreamFailure)) throw error
    throw badImage(`messages: the picture at ${url.origin} could not be fetched: ${error.message}`)
  }
}

/**
 * The last message of the user is the question; messages after it are ignored. Throws `invalid_request` when there is
 * none.
 */
export function decodeMessages(messages: readonly Message[]): RawConversation {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const last = messages[at]
  const question = last && decode('user', last)
  if (!question || (question.text.trim() === '' && question.images.length === 0)) {
    throw new Refusal('invalid_request', 'messages: no user message has content', {
      details: { code: 'missing_message', param: 'messages' },
    })
  }
  const instructions = messages
    .filter(({ role }) => role === 'system' || role === 'developer')
    .map((message) => decode('user', message).text)
    .filter((text) => text.trim() !== '')
    .join('\n\n')
  const history: RawMessage[] = []
  for (const message of messages.slice(0, at)) {
    if (message.role === 'system' || message.role === 'developer') continue
    const decoded = decodeHistory(message)
    if (decoded.text.trim() !== '' || decoded.images.length > 0) history.push(decoded)
  }
  return { instructions, history, question }
}

/** Calls of the client's own tools become text: the agent has other tools. */
function decodeHistory(message: Message): RawMessage {
  if (message.role === 'tool' || message.role === 'function')
    return { role: 'user', text: `[Result of a tool of the client: ${decode('user', message).text}]`, images: [] }
  if (message.role !== 'assistant') return decode('user', message)
  const { text } = decode('assistant', message)
  const calls = (message.tool_calls ?? []).flatMap(({ function: called }) =>
    called ? [`[Called a tool of the client: ${called.name}(${called.arguments})]`] : [],
  )
  return { role: 'assistant', text: [text, ...calls].filter((piece) => piece !== '').join('\n'), images: [] }
}

function decode(role: SpokenMessage['role'], { content }: Message): RawMessage {
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

// Decision: an address that is not fetched is refused, not dropped. The agent would answer about a picture it never
// saw.
function toImage(url: string): RawImage {
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
    throw unsupported('n', 'n: only one choice is supported; send the request again for another')
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
