import type { Message } from '../sessions/contract.ts'

/**
 * Turns before this one whose last message is no whole answer. Those of them that failed under a version which did not mark them would be
 * sent with every later turn.
 */
export function unanswered(messages: readonly Message[], turnId: string): readonly string[] {
  const open: string[] = []
  for (const [at, message] of messages.entries()) {
    if (message.turnId === '' || message.turnId === turnId || messages[at + 1]?.turnId === message.turnId) continue
    const { role, mark, blocks } = message
    if (role !== 'assistant' || mark === 'cut' || blocks.some(({ type }) => type === 'call')) open.push(message.turnId)
  }
  return open
}
