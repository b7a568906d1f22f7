import { realpathSync } from 'node:fs'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { readVariable } from './inherited.ts'

/** The command that starts this program: `svc` if it is on the PATH, `npx svc` in its checkout. */
export function commandName(
  entry: string = process.argv[1] ?? '',
  path: string = readVariable('PATH') ?? '',
  folder: string = currentFolder(),
): string {
  const file = realOf(entry)
  // A development tool or a test runs another file.
  if (file === undefined || !file.endsWith(join('dist', 'svc.js'))) return 'svc'
  const npmFolder = join('node_modules', '.bin')
  // npm adds these folders to the PATH of scripts; a shell does not have them.
  const installed = path
    .split(delimiter)
    .some((one) => one !== '' && !one.endsWith(npmFolder) && realOf(`${one}${sep}svc`) === file)
  if (installed) return 'svc'
  const inside = relative(dirname(dirname(file)), folder)
  return inside === '..' || inside.startsWith(`..${sep}`) ? `${process.execPath} ${file}` : 'npx svc'
}

/** A script of the shell that starts this program, for a folder of commands. `undefined` where it is not built. */
export function launcher(entry: string = process.argv[1] ?? ''): string | undefined {
  const file = realOf(entry)
  if (file === undefined || !file.endsWith(join('dist', 'svc.js'))) return undefined
  const words = [process.execPath, file].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
  return `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`
}

/** The home of this daemon, where a command has to be told of it. */
let namedHome: string | undefined

/** Until it is disposed, command lines name this home; `undefined` for the one that every command finds by itself. */
export function nameHome(home: string | undefined): Disposable {
  namedHome = home
  return {
    [Symbol.dispose]() {
      namedHome = undefined
    },
  }
}

/** A command line of svc in backticks, as it is typed where this program runs. */
export function commandLine(words: string): string {
  return commandLineFor(words, namedHome)
}
/** The same for a home; `undefined` for the one that the command finds by itself. */
export function commandLineFor(words: string, home: string | undefined): string {
  const flag = home === undefined || / --home /.test(words) ? '' : ` --home ${quoteWord(home)}`
  return `\`${commandName()} ${words}${flag}\``
}

/** A word of a shell. */
function quoteWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    return '/' /* The folder was removed. */
  }
}
function realOf(file: string): string | undefined {
  try {
    return realpathSync.native(file)
  } catch {
    return undefined /* the file does not exist */
  }
}
