import { createHash } from 'node:crypto'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { XmppConfig } from './config.ts'
import { sharedFile } from './shared-file.ts'
import type { Element } from './wire.ts'

const DELAY = 'urn:xmpp:delay'
const MAX_FILES = 20

export interface Recipient {
  readonly config: XmppConfig
  readonly now: number
}

export const bareOf = (jid: string): string => jid.split('/', 1)[0]?.toLowerCase() ?? ''
/** Whether this is the address of a room that the bot is in, and not of somebody in it. */
export const isRoom = (jid: string, { rooms }: Pick<XmppConfig, 'rooms'>): boolean =>
  rooms.some((room) => room.toLowerCase() === jid.toLowerCase())
const resourceOf = (jid: string): string => jid.split('/').slice(1).join('/')

/** A message of somebody else with a text; `undefined` for everything else. */
export function decodeMessage(stanza: Element, { config, now }: Recipient): InboundMessage | undefined {
  const { from = '', type = 'normal' } = stanza.attrs as Readonly<Record<string, string | undefined>>
  const body = stanza.getChildText('body') ?? ''
  const isGroup = type === 'groupchat'
  const [chat, name] = [bareOf(from), resourceOf(from)]
  const delay = stanza.getChild('delay', DELAY)
  if (body === '' || from === '' || !['chat', 'normal', 'groupchat'].includes(type)) return undefined
  // People in rooms are known by their names there, also when they write to the bot alone.
  const isOfRoom = isGroup || isRoom(chat, config)
  if (isOfRoom ? isHistoryOrOwn(name, delay !== undefined, config) : chat === config.jid.toLowerCase()) return undefined
  const sender = isOfRoom
    ? { id: `${chat}/${name}`, name, isUnverified: true }
    : { id: chat, name: chat.split('@')[0] ?? chat }
  const replaced = stanza.getChild('replace', 'urn:xmpp:message-correct:0')?.attrs['id'] as string | undefined
  const { attachments, words } = filesOf(stanza, body, config)
  const { text, mentionsBot } = isGroup ? withoutMention(words, config.nick) : { text: words, mentionsBot: true }
  return {
    id: replaced ?? idOf(stanza, chat, isGroup),
    chat: isGroup ? { id: chat, kind: 'group' } : { id: sender.id, kind: 'direct' },
    sender,
    text,
    attachments,
    mentionsBot,
    ...replyOf(stanza),
    ...(replaced !== undefined && { isEdit: true }),
    sentAt: timeOf(delay?.attrs['stamp'], now),
  }
}

/** A file is announced by its address, which is then the body too; with a text where clients write both. */
function filesOf(stanza: Element, body: string, { jid }: XmppConfig) {
  const attachments: InboundAttachment[] = []
  let words = body
  for (const part of stanza.getChildren('x', 'jabber:x:oob').slice(0, MAX_FILES)) {
    const address = part.getChildText('url') ?? ''
    const file = sharedFile(address, jid.split('@')[1]?.toLowerCase() ?? '')
    if (!file) continue
    attachments.push(file)
    words = words.replace(address, '').trim()
  }
  return { attachments, words }
}

function replyOf(stanza: Element): { readonly replyTo?: string } {
  const id: unknown = stanza.getChild('reply', 'urn:xmpp:reply:0')?.attrs['id']
  return typeof id === 'string' ? { replyTo: id } : {}
}

/** Rooms repeat their history, and what the bot wrote. The server keeps direct messages for a user who is away. */
function isHistoryOrOwn(name: string, isDelayed: boolean, { nick }: XmppConfig): boolean {
  return isDelayed || name === '' || name === nick
}

/** Replies name the id of the room in rooms, and that of the sender in chats (XEP-0461). */
function idOf(stanza: Element, chat: string, isGroup: boolean): string {
  const given: unknown = stanza
    .getChildren('stanza-id', 'urn:xmpp:sid:0')
    .find((one) => !isGroup || one.attrs['by'] === chat)?.attrs['id']
  const own: unknown = stanza.attrs['id']
  const id = isGroup ? (given ?? own) : (own ?? given)
  return typeof id === 'string' && id !== ''
    ? id
    : createHash('sha256').update(stanza.toString()).digest('hex').slice(0, 32)
}

function withoutMention(body: string, nick: string): { readonly text: string; readonly mentionsBot: boolean } {
  const name = RegExp.escape(nick)
  const address = new RegExp(`^@?${name}(?:[:,]\\s*|\\s+|$)`, 'i')
  if (address.test(body)) return { text: body.replace(address, ''), mentionsBot: true }
  return { text: body, mentionsBot: new RegExp(`(?<![\\w-])${name}(?![\\w-])`, 'i').test(body) }
}

function timeOf(stamp: unknown, now: number): string {
  const time = typeof stamp === 'string' ? Date.parse(stamp) : NaN
  return isoTime(Number.isNaN(time) ? now : time)
}
