const CONVERSATION = 'dm:'
const KINDS = { c: 'comment', m: 'message', t: 'thread' } as const

/** Comments, messages of conversations and threads are numbered apart. */
export interface Written {
  readonly kind: 'comment' | 'message' | 'thread'
  readonly id: number
}

export function encodeWritten({ kind, id }: Written): string {
  return `${kind[0]}${id}`
}

export function decodeWritten(text: string): Written {
  const [, letter = '', digits = ''] = /^([cmt])(\d{1,16})$/.exec(text) ?? []
  const kind = KINDS[letter as keyof typeof KINDS]
  if (kind === undefined) throw new Error(`No message of Twist has the id ${text}`)
  return { kind, id: Number(digits) }
}

export const chatOfConversation = (id: number): string => `${CONVERSATION}${id}`
/** `undefined` for a channel. */
export const conversationOf = (chatId: string): number | undefined =>
  chatId.startsWith(CONVERSATION) ? Number(chatId.slice(CONVERSATION.length)) : undefined
