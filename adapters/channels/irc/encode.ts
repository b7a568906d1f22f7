import { UpstreamFailure } from 'svc/sdk'

/** Bytes of a text that fit a line beside the longest prefix and name that are usual. */
export const MAX_TEXT_BYTES = 400
/** Of a line with its prefix and without its end. */
const MAX_LINE_BYTES = 510

/** Says that the bot is writing, which clients show for six seconds. Source: https://ircv3.net/specs/client-tags/typing */
export function encodeTyping(target: string): string {
  checkTarget(target)
  return `@+typing=active TAGMSG ${target}`
}

/** The commands that send a text, one for each of its lines. */
export function encodeText(target: string, text: string, prefix: string): readonly string[] {
  checkTarget(target)
  const command = `PRIVMSG ${target} :`
  const room = Math.min(MAX_TEXT_BYTES, MAX_LINE_BYTES - Buffer.byteLength(`:${prefix} ${command}`))
  return text
    .split(/[\r\n\0]+/)
    .filter((line) => line.trim() !== '')
    .flatMap((line) => cutText(line, room))
    .map((line) => command + line)
}

function checkTarget(target: string): void {
  if (/^[^\s,:\0][^\s,\0]*$/.test(target)) return
  throw new UpstreamFailure('irc', `"${target}" is not a channel or nickname`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}

/** Cuts a line into pieces of so many bytes, at spaces where there are some, and never inside a character. */
export function cutText(line: string, room: number): readonly string[] {
  const pieces: string[] = []
  let rest = Buffer.from(line)
  while (rest.length > room) {
    let end = room
    while ((rest[end] ?? 0) >> 6 === 0b10) end--
    const space = rest.lastIndexOf(' ', end)
    if (space > room / 2) end = space
    pieces.push(rest.subarray(0, end).toString())
    rest = rest.subarray(end)
    if (rest[0] === 32) rest = rest.subarray(1)
  }
  pieces.push(rest.toString())
  return pieces
}

/** The steps of SASL PLAIN: base64 in pieces of 400 characters. */
export function encodePlain(user: string, password: string): readonly string[] {
  const text = Buffer.from(`${user}\0${user}\0${password}`).toString('base64')
  const pieces = text.match(/.{1,400}/g) ?? []
  return [...pieces, ...(text.length % 400 === 0 ? ['+'] : [])].map((piece) => `AUTHENTICATE ${piece}`)
}
