/** What begins so is a person, and not a group. */
const PERSON = 'user:'

export function personChat(userId: string): string {
  return `${PERSON}${userId}`
}

/** The person of a chat; `undefined` for a group. */
export function personOf(chatId: string): string | undefined {
  return chatId.startsWith(PERSON) ? chatId.slice(PERSON.length) : undefined
}
