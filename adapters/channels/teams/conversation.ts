/** The conversation of a channel names the post that its thread began with. */
const POST = ';messageid='

/** The chat and the thread of a conversation. */
export function readConversation(id: string): { readonly chatId: string; readonly threadId: string | undefined } {
  const at = id.indexOf(POST)
  if (at === -1) return { chatId: id, threadId: undefined }
  return { chatId: id.slice(0, at), threadId: id.slice(at + POST.length) || undefined }
}

export function conversationId({ chatId, threadId }: { readonly chatId: string; readonly threadId?: string }): string {
  return threadId === undefined ? chatId : `${chatId}${POST}${threadId}`
}
