import * as v from 'valibot'
import { imageTypes } from 'svc/providers'
import { mediaTypeOf } from 'svc/internal'
import { ProtocolProblem } from './problem.ts'
import type { SentImage } from '../../sessions/contract.ts'

const Metadata = v.record(v.string(), v.unknown())
/** A part in the JSON of protocol 1.0; `raw` is base64. One of `text`, `raw`, `url` and `data` is there. */
export const Part = v.object({
  text: v.exactOptional(v.string()),
  raw: v.exactOptional(v.string()),
  url: v.exactOptional(v.string()),
  data: v.exactOptional(v.unknown()),
  filename: v.exactOptional(v.string()),
  mediaType: v.exactOptional(v.string()),
  metadata: v.exactOptional(Metadata),
})
export type Part = v.InferOutput<typeof Part>

/** A message of a client as it is kept, without the ids that its task has anyway. */
export const StoredMessage = v.object({
  messageId: v.string(),
  parts: v.array(Part),
  metadata: v.exactOptional(Metadata),
  extensions: v.exactOptional(v.array(v.string())),
  referenceTaskIds: v.exactOptional(v.array(v.string())),
})
export type StoredMessage = v.InferOutput<typeof StoredMessage>

/** What agents here take and give, as cards say it. */
export const INPUT_MODES = ['text/plain', 'application/json', ...imageTypes]
export const OUTPUT_MODES = ['text/plain']

/** Characters of a content type that an error repeats. */
const MAX_SHOWN = 200
const TEXT = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|toml|[\w.-]+\+(?:json|xml)))$/

/**
 * A message as an agent gets it. Addresses are not fetched: they become text, which the agent may fetch by its own
 * rules. Throws for a part that an agent cannot read.
 */
export async function readParts(
  parts: readonly Part[],
  maxParts: number,
): Promise<{ readonly text: string; readonly images: readonly SentImage[] }> {
  if (parts.length === 0) throw new ProtocolProblem('RequestMalformed', 'message.parts: at least one part is needed')
  if (parts.length > maxParts)
    throw new ProtocolProblem('RequestMalformed', `message.parts: at most ${maxParts} parts (a2a.max_parts)`)
  const texts: string[] = []
  const images: SentImage[] = []
  for (const [at, part] of parts.entries()) {
    const read = await readPart(part, `message.parts[${at}]`)
    if (typeof read === 'string') texts.push(read)
    else images.push(read)
  }
  const text = texts.filter((one) => one !== '').join('\n\n')
  if (text.trim() === '' && images.length === 0)
    throw new ProtocolProblem('RequestMalformed', 'message.parts: there is nothing to read in them')
  return { text, images }
}

async function readPart(part: Part, where: string): Promise<string | SentImage> {
  const { text, raw, url, data, filename = '', mediaType = '' } = part
  const title = filename === '' ? 'File' : `File ${JSON.stringify(filename)}`
  if (text !== undefined) return text
  if (url !== undefined) return `${title}${mediaType === '' ? '' : ` (${mediaType})`}: ${url}`
  if (raw !== undefined) return readFile({ raw, mediaType, title, filename }, where)
  if (data !== undefined) return `\`\`\`json\n${JSON.stringify(data, null, 2)}\n\`\`\``
  throw new ProtocolProblem(
    'ContentTypeNotSupported',
    `${where}: a part has one of text, raw, url and data; this content type is not supported`,
  )
}

async function readFile(
  file: { readonly raw: string; readonly mediaType: string; readonly title: string; readonly filename: string },
  where: string,
): Promise<string | SentImage> {
  const { raw, mediaType, title, filename } = file
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(raw))
    throw new ProtocolProblem('RequestMalformed', `${where}: the bytes of the file are not base64`)
  const bytes = Buffer.from(raw, 'base64')
  const found = await mediaTypeOf(bytes)
  if (imageTypes.has(found)) return { mime: found, base64: bytes.toString('base64'), ...(filename && { filename }) }
  const declared = mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (found === 'text/plain' && (declared === '' || TEXT.test(declared)))
    return `${title}:\n\n${bytes.toString('utf8')}`
  throw new ProtocolProblem(
    'ContentTypeNotSupported',
    `${where}: content type ${declared === '' ? found : declared.slice(0, MAX_SHOWN)} is not supported; ` +
      `send text, JSON, or a picture as ${[...imageTypes].join(', ')}`,
  )
}

/** Throws when the client takes nothing that agents here give. */
export function checkOutputModes(accepted: readonly string[]): void {
  if (accepted.length === 0) return
  const isText = (mode: string): boolean => /^(?:\*\/\*|text(?:\/(?:\*|plain|markdown))?)$/i.test(mode.trim())
  if (accepted.some((mode) => isText(mode.split(';', 1)[0] ?? ''))) return
  throw new ProtocolProblem(
    'ContentTypeNotSupported',
    `configuration.acceptedOutputModes: content types ${accepted.slice(0, 5).join(', ').slice(0, MAX_SHOWN)} are not supported; ` +
      'agents answer as text/plain',
  )
}
