import { findHome } from '../config/home.ts'
import { commandLineFor } from '../process/command-name.ts'

/** Where a command looks for the daemon and its configuration. */
export interface HomeLocation {
  readonly home: string
  readonly configFile: string | undefined
}

export function locateHome(args: {
  readonly home?: string | undefined
  readonly config?: string | undefined
}): HomeLocation {
  return { home: findHome(args.home, process.env, process.cwd()), configFile: args.config }
}

/** A command line in backticks that works for this home as it is printed. */
export function commandFor({ home }: HomeLocation, words: string): string {
  return commandLineFor(words, home === findHome(undefined, process.env, process.cwd()) ? undefined : home)
}

/** The location that a command line names, before any of its flags is checked. */
export function locateHomeIn(words: readonly string[]): HomeLocation {
  return locateHome({ home: readFlag(words, 'home'), config: readFlag(words, 'config') })
}

function readFlag(words: readonly string[], name: string): string | undefined {
  const at = words.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  if (at === -1) return undefined
  return words[at] === `--${name}` ? words[at + 1] : words[at]?.slice(name.length + 3)
}
