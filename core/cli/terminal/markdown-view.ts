import wrapAnsi from 'wrap-ansi'
import { escapeControls } from '../../log/text.ts'
import { renderDuration } from '../output.ts'
import { MarkdownStream } from './markdown.ts'
import type { Screen } from './screen.ts'
import { paint } from './view.ts'
import type { View } from './view.ts'

const DRAW_INTERVAL_MS = 60
const PREAMBLE_LINES = 4
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const
const FRAME_MS = 120

/** Answers are drawn as Markdown while they come, above what is waited for and the line that is edited. */
export class TerminalView implements View {
  readonly colored: boolean
  readonly #screen: Screen
  readonly #stream: MarkdownStream
  #status: string | (() => string) | undefined
  #since = 0
  #preamble = ''
  #preambleSince = 0
  readonly #fold: ((secs: number) => string) | undefined
  /** The block that grows, as it was drawn last, and the width it was drawn for. */
  #growing = ''
  #width = 0
  #timer: NodeJS.Timeout | undefined
  #clock: NodeJS.Timeout | undefined
  /** `fold`: the line that a preamble becomes when it is over; without it all of it stays. */
  constructor(screen: Screen, colored: boolean, fold?: (secs: number) => string) {
    this.#fold = fold
    this.#screen = screen
    this.colored = colored
    this.#stream = new MarkdownStream(() => ({ width: screen.width, colored }))
  }

  note(text: string): void {
    this.#settle()
    this.#screen.both(`${fold(text, this.#screen.width)}\n`, this.#below())
  }
  text(delta: string): void {
    this.#endPreamble()
    this.#stream.add(delta)
    // A block that is hard to read is drawn less often.
    this.#later(Math.max(DRAW_INTERVAL_MS, 4 * this.#stream.cost))
  }
  preamble(delta: string): void {
    if (this.#preamble === '') this.#preambleSince = performance.now()
    this.#preamble += delta
    this.#later(DRAW_INTERVAL_MS)
  }
  status(text: string | (() => string) | undefined): void {
    if (text === this.#status) return
    this.#status = text
    this.#since = performance.now()
    clearInterval(this.#clock)
    const interval = typeof text === 'string' ? FRAME_MS : 1000
    if (text !== undefined) this.#clock = setInterval(() => this.#tick(), interval).unref()
    this.#draw()
  }
  endAnswer(): void {
    this.status(undefined)
    this.#endPreamble()
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#screen.both(this.#stream.end(), [])
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#draw()
    }, ms).unref()
  }
  #draw(): void {
    this.#screen.both(this.#stream.take(), this.#below())
  }
  /** What is waited for is drawn often, the block above it is not read again for that. */
  #tick(): void {
    if (this.#width === this.#screen.width) this.#screen.live(this.#below(this.#growing))
    else this.#draw()
  }
  /** The preamble, or the line it becomes, stays dimmed above the answer that follows. */
  #endPreamble(): void {
    if (this.#preamble === '') return
    const secs = (performance.now() - this.#preambleSince) / 1000
    const preamble = this.#fold?.(secs) ?? escapeControls(this.#preamble.trim(), true)
    this.#preamble = ''
    this.#screen.both(`${this.#dim(preamble)}\n\n`, this.#below())
  }
  /** What comes next is not part of the block that is being written. */
  #settle(): void {
    const done = this.#stream.end()
    if (done !== '') this.#screen.both(done, this.#below())
  }
  #below(growing = this.#stream.peek()): string[] {
    this.#growing = growing
    this.#width = this.#screen.width
    const preamble = escapeControls(this.#preamble.slice(-2000).trim(), true)
    const waitedMs = performance.now() - this.#since
    const secs = Math.floor(waitedMs / 1000)
    const frame = FRAMES[Math.floor(waitedMs / FRAME_MS) % FRAMES.length]
    return [
      ...(preamble === ''
        ? []
        : preamble
            .split('\n')
            .slice(-PREAMBLE_LINES)
            .map((line) => this.#dim(line))),
      ...(growing === '' ? [] : growing.split('\n')),
      ...(this.#status === undefined
        ? []
        : [
            this.#dim(
              typeof this.#status === 'function'
                ? this.#status()
                : `${frame} ${this.#status}${secs > 0 ? `, ${renderDuration(secs)}` : ''}`,
            ),
          ]),
    ]
  }
  #dim(text: string): string {
    return text
      .split('\n')
      .map((line) => paint(this.colored, 90, line))
      .join('\n')
  }
}

/** Breaks long lines between words; each keeps its indentation. */
function fold(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => {
      const indent = /^ */.exec(line)?.[0] ?? ''
      return wrapAnsi(line.slice(indent.length), Math.max(20, width - indent.length))
        .split('\n')
        .map((part) => (indent + part).trimEnd())
        .join('\n')
    })
    .join('\n')
}
