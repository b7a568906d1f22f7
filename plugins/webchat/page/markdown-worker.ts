import { toHtml } from './to-html.ts'

/** The last version of each text on the page, so that only changes are sent back. */
const known = new Map<number, readonly string[]>()

export interface Job {
  readonly id: number
  readonly markdown: string
}
export interface Done {
  readonly id: number
  /** The pieces before this one are as they were. */
  readonly from: number
  readonly pieces: readonly string[]
  readonly total: number
}

self.addEventListener('message', ({ data: { id, markdown } }: MessageEvent<Job>) => {
  const pieces = toHtml(markdown)
  const before = known.get(id) ?? []
  let from = 0
  while (from < before.length && from < pieces.length && before[from] === pieces[from]) from++
  known.set(id, pieces)
  // More than anybody scrolls back to: a dropped text is sent as a whole again.
  if (known.size > 50) known.delete(known.keys().next().value ?? id)
  postMessage({ id, from, pieces: pieces.slice(from), total: pieces.length } satisfies Done, {})
})
