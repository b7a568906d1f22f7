import { defineCommand as defineCittyCommand, runCommand } from 'citty'
import type { ArgsDef, ParsedArgs } from 'citty'

/** One command: its arguments, what its help shows, and how it runs. */
export interface Command {
  readonly args: ArgsDef
  readonly description: string
  /** Command lines, each with what it is good for. */
  readonly examples: readonly (readonly [line: string, meaning: string])[]
  /** Parses the words after the name of the command, runs it and returns the exit code. */
  readonly run: (words: readonly string[]) => Promise<number>
}

/**
 * Defines a command. `run` gets the parsed arguments and returns the exit code (see `exits`); it throws a `Failure` to
 * end with a message and advice. In `examples` and texts the program is called `svc`; help prints it as it is typed
 * where it runs.
 */
export function defineCommand<const T extends ArgsDef>(definition: {
  readonly description: string
  readonly args: T
  readonly examples: Command['examples']
  /** `words` is what was typed after the name of the command: see `repeatedFlag`. */
  readonly run: (args: ParsedArgs<T>, words: readonly string[]) => Promise<number> | number
}): Command {
  const { description, args, examples, run } = definition
  const parsed = defineCittyCommand<T>({
    meta: { description },
    args,
    run: (context) => run(context.args, context.rawArgs),
  })
  return {
    args,
    description,
    examples,
    async run(words) {
      const { result } = await runCommand(parsed, { rawArgs: [...words] })
      return typeof result === 'number' ? result : 0
    },
  }
}

/** All values of a text flag that may be given several times; parsed arguments have the last one only. */
export function repeatedFlag(words: readonly string[], name: string): readonly string[] {
  const flags = words.includes('--') ? words.slice(0, words.indexOf('--')) : words
  return flags.flatMap((word, at) => {
    if (word === `--${name}`) return flags[at + 1] ?? []
    return word.startsWith(`--${name}=`) ? word.slice(name.length + 3) : []
  })
}

/**
 * A name in the tree of commands; one with commands below it may be a command itself.
 * Help and completion load the code of a command too, so it imports what only a run needs inside `run`.
 */
export interface CommandEntry {
  /** One line for the list of commands, without a full stop. */
  readonly summary: string
  readonly load?: () => Promise<{ readonly default: Command }>
  readonly commands?: CommandTree
}
export type CommandTree = Readonly<Record<string, CommandEntry>>

/** Arguments of every command that reads the configuration of a home. */
export const homeArgs = {
  home: { type: 'string', valueHint: 'folder', description: 'Home of the daemon (default: SVC_HOME, else ~/.svc)' },
  config: {
    type: 'string',
    valueHint: 'file',
    description: 'Configuration file instead of svc.config.ts in the current folder',
  },
  json: { type: 'boolean', description: 'Print JSON' },
} as const satisfies ArgsDef

/** Arguments of every command that calls the daemon: see `connect`. */
export const clientArgs = {
  ...homeArgs,
  url: {
    type: 'string',
    valueHint: 'url',
    description: 'Address of the daemon (default: SVC_URL, else the one of the home)',
  },
} as const satisfies ArgsDef
