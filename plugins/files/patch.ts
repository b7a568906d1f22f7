import { Refusal } from 'svc/sdk'

interface Line {
  readonly sign: ' ' | '+' | '-'
  readonly text: string
}
interface Hunk {
  /** A line the hunk comes after, such as the head of a function. */
  readonly after: string | undefined
  readonly lines: readonly Line[]
}
export type Edit =
  | { readonly kind: 'add'; readonly path: string; readonly content: string }
  | { readonly kind: 'delete'; readonly path: string }
  | {
      readonly kind: 'update'
      readonly path: string
      readonly moveTo: string | undefined
      readonly hunks: readonly Hunk[]
    }

const MAX_LINES = 20_000

/** Reads `*** Begin Patch` text or a unified diff. Throws `invalid_request` naming the line. */
export function parsePatch(patch: string): readonly Edit[] {
  const lines = patch.replaceAll('\r\n', '\n').split('\n')
  if (lines.length > MAX_LINES) throw broken(0, `it has more than ${MAX_LINES} lines`)
  const start = lines.findIndex((line) => line.trim() === '*** Begin Patch')
  const edits = start >= 0 ? readBlocks(lines, start + 1) : readUnified(lines)
  if (edits.length === 0)
    throw broken(
      0,
      'it changes no file. Begin with "*** Begin Patch", then "*** Update File: <path>", "*** Add File: <path>" ' +
        'or "*** Delete File: <path>", and end with "*** End Patch"',
    )
  return edits
}

const broken = (line: number, why: string): Refusal =>
  new Refusal('invalid_request', `The patch cannot be read${line > 0 ? ` at line ${line}` : ''}: ${why}.`)

function readBlocks(lines: readonly string[], from: number): Edit[] {
  const edits: Edit[] = []
  let at = from
  const body = (): string[] => {
    const found: string[] = []
    while (at < lines.length && !(lines[at] ?? '').startsWith('*** ')) found.push(lines[at++] ?? '')
    return found
  }
  while (at < lines.length) {
    const line = (lines[at] ?? '').trimEnd()
    const first = ++at
    if (line === '*** End Patch') return edits
    if (line === '') continue
    const [, verb, path = ''] = /^\*\*\* (Add|Update|Delete) File: (.+)$/.exec(line) ?? []
    if (verb === undefined) throw broken(first, `"${line.slice(0, 80)}" begins no file`)
    if (verb === 'Delete') edits.push({ kind: 'delete', path: path.trim() })
    else if (verb === 'Add') {
      const added = body().filter((each, index, all) => each !== '' || index < all.length - 1)
      if (added.some((each) => !each.startsWith('+')))
        throw broken(first + 1, 'every line of an added file begins with +')
      edits.push({ kind: 'add', path: path.trim(), content: added.map((each) => `${each.slice(1)}\n`).join('') })
    } else {
      const move = /^\*\*\* Move to: (.+)$/.exec(lines[at] ?? '')
      if (move) at++
      edits.push({
        kind: 'update',
        path: path.trim(),
        moveTo: move?.[1]?.trim(),
        hunks: readHunks(body(), move ? first + 2 : first + 1),
      })
    }
  }
  throw broken(lines.length, '"*** End Patch" is missing')
}

function readHunks(lines: readonly string[], first: number): Hunk[] {
  const hunks: { after: string | undefined; lines: Line[] }[] = []
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('@@')) {
      // The line numbers of a diff are ignored: the text is searched.
      const after = line
        .replace(/^@@ -\d[\d,]* \+\d[\d,]* @@/, '@@')
        .slice(2)
        .trim()
      hunks.push({ after: after === '' || /^-\d/.test(after) ? undefined : after, lines: [] })
      continue
    }
    if (line.startsWith('\\ No newline') || line === '*** End of File') continue
    const sign = line.charAt(0)
    if (line === '' && index === lines.length - 1) continue
    if (sign !== '+' && sign !== '-' && sign !== ' ' && line !== '')
      throw broken(first + index, 'a line begins with a space, + or -')
    let hunk = hunks.at(-1)
    if (!hunk) hunks.push((hunk = { after: undefined, lines: [] }))
    hunk.lines.push({ sign: sign === '+' || sign === '-' ? sign : ' ', text: line.slice(1) })
  }
  return hunks.filter((hunk) => hunk.lines.length > 0)
}

function readUnified(lines: readonly string[]): Edit[] {
  const edits: Edit[] = []
  const nameOf = (line: string): string => (line.slice(4).split('\t', 1)[0] ?? '').trim()
  const short = (name: string): string => name.replace(/^[ab]\//, '')
  for (let at = 0; at < lines.length; at++) {
    if (!(lines[at] ?? '').startsWith('--- ') || !(lines[at + 1] ?? '').startsWith('+++ ')) continue
    const [from, to] = [nameOf(lines[at] ?? ''), nameOf(lines[at + 1] ?? '')]
    const first = at + 2
    let end = first
    while (end < lines.length && !/^(diff --git |index |--- )/.test(lines[end] ?? '')) end++
    const hunks = readHunks(lines.slice(first, end), first + 1)
    if (to === '/dev/null') edits.push({ kind: 'delete', path: short(from) })
    else if (from === '/dev/null')
      edits.push({
        kind: 'add',
        path: short(to),
        content: hunks.flatMap((hunk) => hunk.lines.map(({ text }) => `${text}\n`)).join(''),
      })
    else
      edits.push({
        kind: 'update',
        path: short(from),
        moveTo: short(from) === short(to) ? undefined : short(to),
        hunks,
      })
    at = end - 1
  }
  return edits
}

/** The text with the hunks applied in order. Throws `conflict` with the lines that were not found. */
export function applyHunks(path: string, text: string, hunks: readonly Hunk[]): string {
  const crlf = text.includes('\r\n')
  const lines = (crlf ? text.replaceAll('\r\n', '\n') : text).split('\n')
  // A file that ends in a line break has no further last line.
  const ends = lines.at(-1) === ''
  if (ends) lines.pop()
  let cursor = 0
  for (const { after, lines: change } of hunks) {
    if (after !== undefined) {
      const found = lines.findIndex((line, index) => index >= cursor && line.trim() === after)
      if (found < 0) throw notFound(path, [after])
      cursor = found + 1
    }
    const before = change.filter(({ sign }) => sign !== '+').map((line) => line.text)
    const at = before.length === 0 ? (after === undefined ? lines.length : cursor) : find(lines, before, cursor)
    if (at < 0) throw notFound(path, before)
    // Context lines are taken from the file: they may differ in trailing spaces.
    let old = at
    const next = change.flatMap(({ sign, text: line }) => {
      if (sign === '+') return [line]
      const kept = lines[old++] ?? line
      return sign === ' ' ? [kept] : []
    })
    lines.splice(at, before.length, ...next)
    cursor = at + next.length
  }
  const result = lines.join('\n') + (ends || text === '' ? '\n' : '')
  return crlf ? result.replaceAll('\n', '\r\n') : result
}

function find(lines: readonly string[], expected: readonly string[], from: number): number {
  for (const same of [(a: string, b: string) => a === b, (a: string, b: string) => a.trimEnd() === b.trimEnd()]) {
    for (let at = from; at + expected.length <= lines.length; at++) {
      if (expected.every((line, index) => same(lines[at + index] ?? '', line))) return at
    }
  }
  return -1
}
const notFound = (path: string, expected: readonly string[]): Refusal =>
  new Refusal(
    'conflict',
    `"${path}" does not hold these lines, in this place; read it ` +
      `again:\n${expected.slice(0, 5).join('\n').slice(0, 500)}`,
  )
