import { realpathSync } from 'node:fs'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { readVariable } from './inherited.ts'

/** How this program is called where it runs: `svc` where the PATH leads to it, `npx svc` in its checkout. */
export function commandName(
  entry: string = process.argv[1] ?? '',
  path: string = readVariable('PATH') ?? '',
  folder: string = currentFolder(),
): string {
  const file = realOf(entry)
  // What a development tool or a test runs is called by its name.
  if (file === undefined || !file.endsWith(join('dist', 'svc.js'))) return 'svc'
  // npm puts these folders before the PATH of what it runs; a shell does not have them.
  const installed = path
    .split(delimiter)
    .some((one) => one !== '' && !one.endsWith(join('node_modules', '.bin')) && realOf(join(one, 'svc')) === file)
  if (installed) return 'svc'
  const inside = relative(dirname(dirname(file)), folder)
  return inside === '..' || inside.startsWith(`..${sep}`) ? `${process.execPath} ${file}` : 'npx svc'
}

/** A command as it is typed where this program runs, in backticks: every text that names one takes it from here. */
export function commandLine(words: string): string {
  return `\`${commandName()} ${words}\``
}

function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    return '/' /* It was removed under this process. */
  }
}
function realOf(file: string): string | undefined {
  try {
    return realpathSync(file)
  } catch {
    return undefined /* there is no such file */
  }
}
