import { defineCommand } from 'citty'
import type { ArgsDef, CommandDef, ParsedArgs } from 'citty'

/** One command: what citty needs to parse it, and what its help shows. */
export interface Command {
  readonly definition: CommandDef<any>
  readonly args: ArgsDef
  readonly description: string
  /** Command lines, each with what it is good for. */
  readonly examples: readonly (readonly [line: string, meaning: string])[]
}

/** `run` returns the exit code; a `Failure` thrown in it says more. */
export function command<const T extends ArgsDef>(parts: {
  readonly description: string
  readonly args: T
  readonly examples: Command['examples']
  readonly run: (args: ParsedArgs<T>) => Promise<number> | number
}): Command {
  const { description, args, examples, run } = parts
  return {
    definition: defineCommand<T>({ meta: { description }, args, run: (context) => run(context.args) }),
    args,
    description,
    examples,
  }
}

export const homeArgs = {
  home: { type: 'string', valueHint: 'folder', description: 'Home of the daemon (default: SVC_HOME, else ~/.svc)' },
  config: {
    type: 'string',
    valueHint: 'file',
    description: 'Configuration file instead of svc.config.ts in the current folder',
  },
  json: { type: 'boolean', description: 'Print JSON' },
} as const satisfies ArgsDef

export const clientArgs = {
  ...homeArgs,
  url: {
    type: 'string',
    valueHint: 'url',
    description: 'Address of the daemon (default: SVC_URL, else the one of the home)',
  },
} as const satisfies ArgsDef
