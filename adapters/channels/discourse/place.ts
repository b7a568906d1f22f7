import { UpstreamFailure } from 'svc/sdk'
import type { Destination } from 'svc/channels'

/** Categories are chats with topics as threads; a topic of personal messages is a chat of its own. */
export const categoryChat = (id: number): string => `category:${id}`
export const privateChat = (topic: number): string => `pm:${topic}`

/** The topic that a message goes to. */
export function topicOf({ chatId, threadId }: Destination): number {
  const id = /^pm:(\d{1,15})$/.exec(chatId)?.[1] ?? /^(\d{1,15})$/.exec(threadId ?? '')?.[1]
  if (id !== undefined) return Number(id)
  throw new UpstreamFailure('discourse', `a message to ${chatId} needs a topic: new ones are not made`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}

/** Posts are named by their topic and their number in it, as answers name them. */
export const postId = (topic: number, number: number): string => `${topic}/${number}`

export function numberOf(id: string): number | undefined {
  const number = /^\d{1,15}\/(\d{1,15})$/.exec(id)?.[1]
  return number === undefined ? undefined : Number(number)
}
