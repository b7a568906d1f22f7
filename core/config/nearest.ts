/** The candidate a misspelt word most likely stands for, or `undefined` when none is close. */
export function findNearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  // A third of the letters may be wrong; beyond that a suggestion misleads.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const steps = distance(word.toLowerCase().replaceAll('-', '_'), candidate.toLowerCase().replaceAll('-', '_'), least)
    if (steps < least) [best, least] = [candidate, steps]
  }
  return best
}

/** What a message about something unknown ends with; nothing when nothing known is near. */
export function suggest(nearest: string | undefined): string {
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

/** Insertions, deletions, replacements and swaps of neighbours between two words; at least `limit` when there are that many. */
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
