import type { OutboundAttachment } from 'svc/channels'

/** A space without width. The forum counts the letters it is written with. */
const FILLER = '&#8203;'
/** Splits what the forum would notify people of. */
const BREAK = '\u200b'

/** Nobody is notified by what an agent writes, and what is too short for the forum is filled up invisibly. */
export function encodeText(text: string, minLength: number): string {
  const silent = text.replaceAll(/(?<![\p{L}\p{N}_])@(?=[\p{L}\p{N}_])/gu, `@${BREAK}`)
  const missing = minLength - [...silent.trim()].length
  return missing > 0 ? `${silent}\n\n${FILLER.repeat(Math.ceil(missing / FILLER.length))}` : silent
}

/** The markup of a file that was uploaded. */
export function encodeFile({ kind, name }: OutboundAttachment, shortUrl: string): string {
  const label = name.replaceAll(/[[\]|\n]/g, '_')
  return kind === 'image' ? `![${label}](${shortUrl})` : `[${label}|attachment](${shortUrl})`
}
