import type { Turn } from 'svc/providers'

const NOTE = '[An image was here. This model cannot read images.]'

/** Whether a user's message before the last one holds an image. */
export function hasOldImages(turns: readonly Turn[]): boolean {
  const last = turns.findLastIndex(({ role }) => role === 'user')
  return turns.some((turn, at) => at < last && turn.role === 'user' && turn.parts.some(({ type }) => type === 'image'))
}

/** Whether the last message of the user holds an image. */
export function asksAboutImage(turns: readonly Turn[]): boolean {
  const last = turns.findLast((turn) => turn.role === 'user')
  return last?.parts.some(({ type }) => type === 'image') ?? false
}

/**
 * The same turns, with a note in place of each image of an earlier message: a model without vision would refuse them
 * all.
 */
export function withoutOldImages(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.findLastIndex(({ role }) => role === 'user')
  return turns.map((turn, at) => {
    if (at >= last || turn.role !== 'user') return turn
    return { ...turn, parts: turn.parts.map((part) => (part.type === 'image' ? { type: 'text', text: NOTE } : part)) }
  })
}
