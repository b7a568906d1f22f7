import { createInterface } from 'node:readline'
import type { Conversation } from '../conversation.ts'
import { exits } from '../failure.ts'
import { PasteFilter, pasteMode } from './paste.ts'
import type { Screen } from './screen.ts'
import { paint } from './view.ts'

interface LineParts {
  readonly screen: Screen
  readonly colored: boolean
  /** Called before the first line can be typed; `leave` ends it all. */
  readonly onOpen: (leave: () => void) => void
  /** A line that is not empty; `begunAt` is when its first character was typed, by the clock of this process. */
  readonly onLine: (text: string, begunAt: number) => void
  /** Ctrl-C with nothing typed. */
  readonly onInterrupt: () => void
}

/** The line that is edited at the bottom of the terminal. Settles when it is left. */
export async function readLines(parts: LineParts): Promise<void> {
  const { screen, colored } = parts
  const typed = new PasteFilter(process.stdin)
  const mark = '> '
  const editor = createInterface({
    input: typed,
    output: process.stdout,
    terminal: true,
    prompt: paint(colored, 36, mark),
    historySize: 200,
    removeHistoryDuplicates: true,
  })
  const modeOff = (): void => {
    process.stdout.write(pasteMode.off)
  }
  let begunAt = 0
  typed.prependListener('data', () => {
    if (editor.line === '') begunAt = performance.now()
  })
  editor.on('line', (line) => {
    const text = typed.restore(line).trim()
    screen.sent(mark + line, paint(colored, 36, mark) + text)
    if (text !== '') parts.onLine(text, begunAt)
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

/** Messages go one after the other; what is sent during an answer waits, but an answer to a question and /stop do not. */
export async function converseInTerminal(talk: Conversation, screen: Screen, colored: boolean): Promise<number> {
  let work = Promise.resolve()
  // Not the end of the input: what was sent before that is still answered.
  let left = false
  let close = (): void => undefined
  const leave = (): void => {
    left = true
    close()
  }
  await readLines({
    screen,
    colored,
    onOpen(end) {
      close = end
      talk.greet()
    },
    onLine(text, begunAt) {
      if (talk.answersApproval(text, begunAt)) return
      if (text === '/stop' && talk.cancel()) return
      work = work.then(async () => {
        if (left) return
        try {
          if ((await talk.take(text)) === 'exit') leave()
        } catch (error) {
          if (!talk.survives(error)) leave()
        }
      })
    },
    onInterrupt() {
      if (!talk.cancel()) leave()
    },
  })
  await work
  return exits.ok
}
