import { runInTerminal } from '../process/operator-program.ts'
import { exits, Failure } from './failure.ts'

/**
 * Lets a person edit a file in the editor that `VISUAL` or `EDITOR` names, else vi, and returns when it is closed. Throws
 * a `Failure` when there is no such editor or it ends with an error.
 */
export async function editFile(file: string): Promise<void> {
  const editor = process.env['VISUAL']?.trim() || process.env['EDITOR']?.trim() || 'vi'
  // The variable may hold flags too, and a shell reads it as every other program lets it.
  const code = await runInTerminal('/bin/sh', ['-c', `${editor} "$1"`, 'editor', file])
  if (code === 0) return
  throw new Failure(
    exits.failed,
    `the editor "${editor}" ended with ${code === null ? 'a signal' : `code ${code}`}`,
    'set EDITOR to one that is installed, such as EDITOR=nano, or one that waits, such as EDITOR="code --wait"',
  )
}
