/** Memories and characters whose words one commit takes out of the index: what it keeps others waiting. */
const MAX_MEMORIES = 20
const MAX_CHARS = 2_000

export interface Sized {
  readonly id: string
  readonly chars: number
}

/** Whether taking the words of these out of the index keeps nobody waiting. */
export function areFew(memories: readonly Sized[]): boolean {
  return memories.length <= MAX_MEMORIES && memories.reduce((sum, { chars }) => sum + chars, 0) <= MAX_CHARS
}

/** The first ids that fit into one commit, at least one. */
export function firstSlice(memories: readonly Sized[]): readonly string[] {
  const ids: string[] = []
  let left = MAX_CHARS
  for (const { id, chars } of memories.slice(0, MAX_MEMORIES)) {
    if (chars > left && ids.length > 0) break
    left -= chars
    ids.push(id)
  }
  return ids
}
