import { createInterface } from 'node:readline'
import type { Conversation } from '../conversation.ts'
import { exits } from '../failure.ts'
import { PasteFilter, pasteMode } from './paste.ts'
import type { Screen } from './screen.ts'
import { paint } from './view.ts'

/** Messages go one after the other; what is sent during an answer waits, but an answer to a question and /stop do not. */
export async function converseInTerminal(talk: Conversation, screen: Screen, colored: boolean): Promise<number> {
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
  let work = Promise.resolve()
  // Not the end of the input: what was sent before that is still answered.
  let left = false
  let begunAt = 0
  const leave = (): void => {
    left = true
    editor.close()
  }
  typed.prependListener('data', () => {
    if (editor.line === '') begunAt = performance.now()
  })
  editor.on('line', (line) => {
    const text = typed.restore(line).trim()
    screen.sent(mark + line, paint(colored, 36, mark) + text)
    if (text === '') return
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
  })
  editor.on('SIGINT', () => {
    if (editor.line !== '') {
      editor.write(null, { ctrl: true, name: 'e' })
      editor.write(null, { ctrl: true, name: 'u' })
    } else if (!talk.cancel()) leave()
  })
  editor.on('SIGCONT', () => process.stdout.write(pasteMode.on))
  process.once('exit', modeOff)
  try {
    process.stdout.write(pasteMode.on)
    talk.greet()
    screen.edit(editor)
    await new Promise<void>((resolve) => editor.once('close', resolve))
    await work
    return exits.ok
  } finally {
    process.off('exit', modeOff)
    modeOff()
    editor.close()
    process.stdin.unpipe(typed)
    process.stdin.pause()
  }
}
