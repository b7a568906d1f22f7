import { createHash, randomUUID } from 'node:crypto'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { IrcLine } from './wire.ts'

/** Colours, bold and the like. */
const FORMATTING = new RegExp(
  ['\u0003(?:\\d{1,2}(?:,\\d{1,2})?)?', '\u0004(?:[0-9a-f]{6})?', '[\u0002\u000F\u0011\u0016\u001D-\u001F]'].join('|'),
  'gi',
)
/** Around a request of one client to another. */
const CTCP = '\u0001'
const CHANNEL = /^[#&]/

export interface Recipient {
  readonly nick: string
  /** The server tells the accounts of senders. */
  readonly hasAccounts: boolean
  readonly now: number
}

/** A PRIVMSG of somebody else; `undefined` for the requests of clients to each other (CTCP), which are not answered. */
export function decodeMessage(line: IrcLine, recipient: Recipient): InboundMessage | undefined {
  const [target = '', raw = ''] = line.params
  const body = readBody(raw)
  if (body === undefined || line.from === '') return undefined
  const isGroup = CHANNEL.test(target)
  const { text, isMention } = withoutMention(body, recipient.nick)
  const account = line.tags.get('account')
  return {
    id: idOf(line),
    chat: isGroup ? { id: target.toLowerCase(), kind: 'group', title: target } : { id: line.from, kind: 'direct' },
    sender: {
      // Where accounts are known, a nickname without one must not pass for the account of that name.
      id: account ?? (recipient.hasAccounts ? `~${line.from}` : line.from),
      name: line.from,
      ...(account === undefined && { isUnverified: true }),
      ...(line.tags.has('bot') && { isBot: true }),
    },
    text: isGroup ? text : body,
    attachments: [],
    mentionsBot: isMention,
    sentAt: timeOf(line, recipient.now),
  }
}

function readBody(raw: string): string | undefined {
  if (!raw.startsWith(CTCP)) return raw.replaceAll(FORMATTING, '')
  const [command, ...words] = raw.slice(1).split(CTCP, 1).join('').split(' ')
  return command === 'ACTION' ? words.join(' ').replaceAll(FORMATTING, '') : undefined
}

/** `bot: hello`, `@bot hello`, or the name anywhere. */
function withoutMention(text: string, nick: string): { readonly text: string; readonly isMention: boolean } {
  const name = RegExp.escape(nick)
  const inNick = String.raw`[\w[\]\\\`^{|}-]`
  const address = new RegExp(`^@?${name}(?:[:,]\\s*|\\s+|$)`, 'i')
  if (address.test(text)) return { text: text.replace(address, ''), isMention: true }
  return { text, isMention: new RegExp(`(?<!${inNick})${name}(?!${inNick})`, 'i').test(text) }
}

/** A server without message ids never sends a message twice, so any new id will do. One with times may replay them. */
function idOf({ tags, params, prefix }: IrcLine): string {
  const id = tags.get('msgid')
  if (id !== undefined) return id
  const time = tags.get('time')
  if (time === undefined) return randomUUID()
  return createHash('sha256')
    .update(JSON.stringify([time, prefix, params]))
    .digest('hex')
    .slice(0, 32)
}

function timeOf({ tags }: IrcLine, now: number): string {
  const time = Date.parse(tags.get('time') ?? '')
  return isoTime(Number.isNaN(time) ? now : time)
}
