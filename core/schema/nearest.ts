/** The candidate a misspelt word most likely stands for, or `undefined` when none is close. */
export function findNearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let minDistance = farthest(word)
  for (const candidate of candidates) {
    const steps = distance(plain(word), plain(candidate), minDistance)
    if (steps < minDistance) [best, minDistance] = [candidate, steps]
  }
  return best
}

/**
 * The candidates that come nearest to a misspelt word or a part of a name, the nearest first; none that would mislead.
 */
export function listNearest(word: string, candidates: Iterable<string>, maxResults = 3): readonly string[] {
  const target = plain(word)
  const limit = farthest(word)
  const ranked = [...new Set(candidates)].flatMap((candidate) => {
    const other = plain(candidate)
    const steps = distance(target, other, limit)
    const contained = target.length > 2 && (other.includes(target) || target.includes(other))
    return steps < limit
      ? [{ candidate, steps }]
      : contained
        ? [{ candidate, steps: limit + Math.abs(other.length - target.length) }]
        : []
  })
  return ranked
    .sort((a, b) => a.steps - b.steps || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, maxResults)
    .map(({ candidate }) => candidate)
}

const plain = (word: string): string => word.toLowerCase().replaceAll('-', '_')
/** A third of the letters may be wrong; beyond that a suggestion misleads. */
const farthest = (word: string): number => Math.max(1, Math.floor(word.length / 3)) + 1

/** What a message about something unknown ends with; nothing when nothing known is near. */
export function suggest(nearest: string | undefined): string {
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

/**
 * Insertions, deletions, replacements and swaps of neighbours between two words; at least `limit` when there are that
 * many.
 */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const line = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let steps = Math.min(
        (last[column] ?? limit) + 1,
        (line[column - 1] ?? limit) + 1,
        (last[column - 1] ?? limit) + (same ? 0 : 1),
      )
      if (a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        steps = Math.min(steps, (before[column - 2] ?? limit) + 1)
      line.push(steps)
    }
    before = last
    last = line
  }
  return last[b.length] ?? limit
}
