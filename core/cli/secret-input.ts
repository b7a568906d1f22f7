import { exits, Failure } from './failure.ts'
import { note } from './output.ts'

/** Longer than any key. */
const MAX_CHARS = 16_384

/**
 * One line that nobody sees: typed on a terminal without echo, else the first line of standard input. Without the
 * spaces around it. What came after it waits for the next read. Throws a `Failure` on Ctrl-C.
 */
export function readSecret(prompt: string, input: NodeJS.ReadStream = process.stdin): Promise<string> {
  return new Promise((resolve, reject) => {
    const hidden = input.isTTY === true
    if (hidden) {
      // First the echo goes: what is pasted, or sent by a program, the moment the question shows must not be shown.
      input.setRawMode(true)
      process.stderr.write(prompt)
    }
    let text = ''
    const end = (settle: () => void): void => {
      input.off('data', read).off('end', ended).off('error', failed).pause()
      if (hidden) {
        input.setRawMode(false)
        note('')
      }
      settle()
    }
    const done = (): void => end(() => resolve(text.trim()))
    const ended = (): void => done()
    const failed = (error: Error): void => end(() => reject(error))
    const read = (piece: string): void => {
      let at = 0
      for (const character of piece) {
        at += character.length
        if (character === '\r' || character === '\n') {
          done()
          const rest = piece.slice(character === '\r' && piece[at] === '\n' ? at + 1 : at)
          if (rest !== '') input.unshift(rest)
          return
        }
        if (hidden && character === '\u0003')
          return end(() => reject(new Failure(exits.interrupted, 'interrupted', 'nothing was changed')))
        if (hidden && character === '\u0004') return done()
        if (hidden && (character === '\u007F' || character === '\b')) text = text.slice(0, -1)
        else if (hidden && character === '\u0015') text = ''
        else text += character
      }
      if (text.length > MAX_CHARS)
        end(() => reject(new Failure(exits.usage, 'that is too long for a key', 'nothing was changed')))
    }
    input.setEncoding('utf8').on('data', read).on('end', ended).on('error', failed).resume()
  })
}
