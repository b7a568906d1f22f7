import { omitUndefined } from 'svc/sdk'
import type { OutboundAttachment } from 'svc/channels'
import type { Blob, ReplyRef } from './wire.ts'

export const POSTS = 'app.bsky.feed.post'
const LINK = /https?:\/\/[^\s<>"]+/g

const MAX_IMAGES = 4
/** Beside the limit of 300 characters: https://github.com/bluesky-social/atproto/blob/main/lexicons/app/bsky/feed/post.json */
const MAX_BYTES = 3000

/** What one post shows. */
export interface Part {
  readonly text: string
  readonly images: readonly OutboundAttachment[]
}

/** A message as posts: most are one. Files that are no pictures are named instead. */
export function partsOf(text: string, files: readonly OutboundAttachment[]): readonly Part[] {
  const images = files.filter(({ kind }) => kind === 'image')
  const others = files.filter(({ kind }) => kind !== 'image')
  const [first = '', ...more] = piecesOf(text)
  const parts: Part[] = [{ text: first, images: images.slice(0, MAX_IMAGES) }]
  for (const piece of more) parts.push({ text: piece, images: [] })
  for (let at = MAX_IMAGES; at < images.length; at += MAX_IMAGES)
    parts.push({ text: '', images: images.slice(at, at + MAX_IMAGES) })
  for (const { name } of others)
    parts.push({ text: `[The file ${name.slice(0, 200)} was not sent: pictures only here.]`, images: [] })
  return parts.filter((part) => part.text !== '' || part.images.length > 0)
}

/** A text of few characters can have many bytes, such as one of family emoji. */
function piecesOf(text: string): readonly string[] {
  if (Buffer.byteLength(text) <= MAX_BYTES) return [text]
  const pieces: string[] = []
  let piece = ''
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text))
    // A letter with a thousand accents is cut between them.
    for (const part of Buffer.byteLength(segment) > MAX_BYTES ? segment : [segment]) {
      if (Buffer.byteLength(piece + part) > MAX_BYTES) {
        pieces.push(piece)
        piece = ''
      }
      piece += part
    }
  return [...pieces, piece]
}

export interface PictureBlob {
  readonly image: Blob
  readonly alt: string
}

/** The record of a post. */
export function encodePost(given: {
  readonly text: string
  readonly images: readonly PictureBlob[]
  readonly createdAt: string
  readonly reply: ReplyRef | undefined
}) {
  const { text, images, createdAt, reply } = given
  const facets = linksOf(text)
  return omitUndefined({
    $type: POSTS,
    text,
    createdAt,
    reply,
    facets: facets.length > 0 ? facets : undefined,
    embed: images.length > 0 ? { $type: 'app.bsky.embed.images', images } : undefined,
  })
}

/** Nothing in a text is a link unless the record says so. Mentions are left as text: they would notify people. */
function linksOf(text: string) {
  return [...text.matchAll(LINK)].flatMap(({ index, 0: found }) => {
    const uri = withoutEnd(found)
    if (!URL.canParse(uri)) return []
    const byteStart = Buffer.byteLength(text.slice(0, index))
    return [
      {
        index: { byteStart, byteEnd: byteStart + Buffer.byteLength(uri) },
        features: [{ $type: 'app.bsky.richtext.facet#link', uri }],
      },
    ]
  })
}

/** Signs that end a sentence or a bracket are none of the address. */
function withoutEnd(found: string): string {
  const uri = found.replace(/[.,;:!?'*_]+$/, '')
  return uri.endsWith(')') && !uri.includes('(') ? withoutEnd(uri.slice(0, -1)) : uri
}
