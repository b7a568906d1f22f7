import type { ChannelCapabilities, Dialect } from 'svc/channels'
import type { Mark, Run } from './document.ts'
import { graphemesOf, isLonger, lengthOf } from './length.ts'
import { renderRuns, Writer } from './render.ts'

export interface RenderedMessage {
  /** In the dialect, within the limit. */
  readonly text: string
  /** The same without markup. */
  readonly plainText: string
}
export type Limit = Pick<ChannelCapabilities, 'maxLength' | 'lengthUnit'>

/** Where a text may be cut, the best place last. */
const Cut = { none: 0, word: 1, sentence: 2, line: 3, block: 4 } as const
/** A word, or the space behind it. */
interface Piece extends Run {
  /** How good it is to cut behind this piece. */
  readonly cut: number
}
/** A cut at a line or block is taken if the message is at least this full without the rest. */
const MIN_FILL = 0.5
/** UTF-16 units of what a reader sees as one character, in the longest case. */
const MAX_UNITS = 16
/** A longer address would take most of a message. */
const MAX_HREF = 1000

/** Splits runs into messages within the limit, at the end of a block, line, sentence or word where there is one. */
export function splitRuns(runs: readonly Run[], dialect: Dialect, limit: Limit): readonly RenderedMessage[] {
  const messages: RenderedMessage[] = []
  const begun = new Set<Mark>()
  const pieces = runs.flatMap((run) => piecesOf(shortLinks(run)))
  for (let from = skipSpace(pieces, 0); from < pieces.length; from = skipSpace(pieces, from)) {
    const fitting = countFitting(pieces, from, new Writer(dialect, begun), limit)
    let used: readonly Piece[]
    if (fitting === 0) used = splitOff(pieces, from, () => new Writer(dialect, begun), limit)
    else {
      const end = bestCut(pieces, from, from + fitting)
      used = withoutTrailingSpace(pieces.slice(from, end))
      from = end
    }
    if (used.length === 0) continue
    messages.push({ text: renderRuns(used, dialect, begun), plainText: renderRuns(used, 'plain', begun) })
    for (const mark of used.flatMap(({ marks, isGap }) => (isGap ? [] : marks))) begun.add(mark)
  }
  return messages
}

/** Lengths of what a writer has, counting each piece once. */
class Meter {
  readonly #writer: Writer
  readonly #limit: Limit
  #length = 0
  #isFull = false
  constructor(writer: Writer, limit: Limit) {
    this.#writer = writer
    this.#limit = limit
  }

  /** Writes a run; whether the whole still fits. What does not fit for sure is not written. */
  add(run: Run): boolean {
    const { lengthUnit, maxLength } = this.#limit
    // Markup only makes it longer. Writing all of a long word for each message it fills takes a square of its length.
    this.#isFull ||= isLonger(run.text, lengthUnit, maxLength - this.#length)
    if (this.#isFull) return false
    this.#writer.write(run)
    this.#length += lengthOf(this.#writer.takeAdded(), lengthUnit)
    return this.#length + lengthOf(this.#writer.closing, lengthUnit) <= maxLength
  }
}

/** How many pieces from here fit into one message. */
function countFitting(pieces: readonly Piece[], from: number, writer: Writer, limit: Limit): number {
  const meter = new Meter(writer, limit)
  for (let at = from; at < pieces.length; at++) {
    const piece = pieces[at]
    // Space at the end of a message is left out.
    if (piece && !meter.add(piece) && !isSpace(piece)) return at - from
  }
  return pieces.length - from
}

/** The end of a message: all that fits, or a better place to cut before it. */
function bestCut(pieces: readonly Piece[], from: number, end: number): number {
  if (end === pieces.length) return end
  let best = end
  let quality: number = pieces[end - 1]?.cut ?? Cut.none
  for (let at = end - 1; at > from + (end - from) * MIN_FILL; at--) {
    const { cut } = pieces[at - 1] ?? { cut: Cut.none }
    if (cut > quality) [best, quality] = [at, cut]
  }
  return best
}

/** Takes as many characters as fit off the beginning of a piece that is too long. */
function splitOff(pieces: Piece[], at: number, createWriter: () => Writer, limit: Limit): readonly Piece[] {
  const piece = pieces[at]
  if (!piece) return []
  const meter = new Meter(createWriter(), limit)
  let head = ''
  for (const text of graphemesOf(piece.text)) {
    if (!meter.add({ marks: piece.marks, text })) break
    head += text
  }
  // The marks alone take more than a message, or one character does: neither can be shown.
  if (head === '' && piece.marks.length > 0) pieces[at] = { ...piece, marks: [] }
  else pieces[at] = { ...piece, text: piece.text.slice(head.length || firstOf(piece.text).length) }
  return head === '' ? [] : [{ ...piece, text: head }]
}

function piecesOf(run: Run): readonly Piece[] {
  if (run.isGap) return [{ ...run, cut: run.text.length > 1 ? Cut.block : Cut.line }]
  const pieces: Piece[] = []
  for (const text of run.text.split(/(\n+|[^\S\n]+)/)) {
    if (text === '') continue
    pieces.push({ ...run, text, cut: cutBehind(text, pieces.at(-1)?.text ?? '') })
  }
  return pieces
}
function cutBehind(text: string, before: string): number {
  if (text.startsWith('\n')) return text.length > 1 ? Cut.block : Cut.line
  if (text.trim() !== '') return Cut.none
  return /[.!?…。！？]["')\]]?$/.test(before) ? Cut.sentence : Cut.word
}

function firstOf(text: string): string {
  const [grapheme = ''] = graphemesOf(text.slice(0, MAX_UNITS))
  return grapheme
}

function shortLinks(run: Run): Run {
  const isLong = run.marks.some((mark) => mark.kind === 'link' && mark.href.length > MAX_HREF)
  return isLong ? { ...run, marks: run.marks.filter(({ kind }) => kind !== 'link') } : run
}

const isCode = ({ marks }: Run): boolean => marks.some(({ kind }) => kind === 'code-block')
/** Blank pieces at the edge of a message; the indentation of code stays. */
const isSpace = (piece: Piece): boolean =>
  piece.isGap === true || (piece.text.trim() === '' && (!isCode(piece) || piece.text.startsWith('\n')))

/** The first piece from here that shows something. */
function skipSpace(pieces: readonly Piece[], from: number): number {
  let at = from
  for (let piece = pieces[at]; piece && isSpace(piece); piece = pieces[at]) at++
  return at
}
function withoutTrailingSpace(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.slice(0, pieces.findLastIndex((piece) => !isSpace(piece)) + 1)
}
