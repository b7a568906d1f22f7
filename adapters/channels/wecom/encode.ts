import { breakMentions } from 'svc/channels'

/** A mention in Markdown, such as `<@all>`. */
const MENTION = /<(?=@)/g

/** Nobody is mentioned by what an agent writes. */
export function encodeMarkdown(text: string): { readonly content: string } {
  return { content: breakMentions(text, MENTION) }
}

/** Pictures of other types, and large ones, are files. */
export function mediaType({ mime, size }: { readonly mime: string; readonly size: number }): 'image' | 'file' {
  return (mime === 'image/png' || mime === 'image/jpeg') && size <= 2_000_000 ? 'image' : 'file'
}
