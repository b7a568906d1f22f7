import type { CompleterResult } from 'node:readline'
import { createInterface } from 'node:readline/promises'
import { PasteFilter, pasteMode } from './paste.ts'
import type { Screen } from './screen.ts'
import { paint } from './view.ts'

interface LineEditorOptions {
  readonly screen: Screen
  readonly colored: boolean
  /** Called before the first line can be typed; `leave` ends it all. */
  readonly onOpen: (leave: () => void) => void
  /** A line that is not empty; `begunAt` is when its first character was typed, by the clock of this process. */
  readonly onLine: (text: string, begunAt: number) => void
  /** Ctrl-C with nothing typed. */
  readonly onInterrupt: () => void
  /** Lines of earlier runs, the oldest first. */
  readonly history?: readonly string[]
  /** Gets each line as it stood in the editor, to be in `history` next time. */
  readonly remember?: (line: string) => void
  /** What the line before the cursor may become with Tab. */
  readonly complete?: (line: string) => Promise<readonly string[]>
}

/** The line that is edited at the bottom of the terminal. Settles when it is left. */
export async function readLines(parts: LineEditorOptions): Promise<void> {
  const { screen, colored, history = [], complete } = parts
  const typed = new PasteFilter(process.stdin)
  const mark = '> '
  const editor = createInterface({
    input: typed,
    output: process.stdout,
    terminal: true,
    prompt: paint(colored, 36, mark),
    historySize: 500,
    removeHistoryDuplicates: true,
    history: history.toReversed(),
    ...(complete && {
      completer: async (line: string): Promise<CompleterResult> => {
        const found = await complete(line)
        if (found.length < 2 || commonStart(found).length > line.length) return [[...found], line]
        // Node would list them below the line, where the screen does not know of it.
        // Of a path the name; a slash at the beginning is that of a command.
        const from = Math.max(line.lastIndexOf(' '), line.lastIndexOf('/') || -1) + 1
        screen.print(found.map((one) => paint(colored, 90, one.slice(from))).join('  '))
        return [[], line]
      },
    }),
  })
  const modeOff = (): void => {
    process.stdout.write(pasteMode.off)
  }
  let begunAt = 0
  typed.prependListener('data', () => {
    if (editor.line === '') begunAt = performance.now()
  })
  editor.on('line', (line) => {
    const text = typed.expand(line).trim()
    screen.sent(mark + line, paint(colored, 36, mark) + text)
    if (text === '') return
    // A text that is shown by its size is not known to the next run.
    if (typed.isWhole(line)) parts.remember?.(line)
    parts.onLine(text, begunAt)
  })
  editor.on('SIGINT', () => {
    if (editor.line !== '') {
      editor.write(null, { ctrl: true, name: 'e' })
      editor.write(null, { ctrl: true, name: 'u' })
    } else parts.onInterrupt()
  })
  editor.on('SIGCONT', () => process.stdout.write(pasteMode.on))
  process.once('exit', modeOff)
  const closed = new Promise<void>((resolve) => editor.once('close', resolve))
  try {
    process.stdout.write(pasteMode.on)
    parts.onOpen(() => editor.close())
    screen.edit(editor)
    await closed
  } finally {
    process.off('exit', modeOff)
    modeOff()
    editor.close()
    process.stdin.unpipe(typed)
    process.stdin.pause()
  }
}

/** How all of them begin. */
function commonStart([first = '', ...others]: readonly string[]): string {
  let length = first.length
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}
