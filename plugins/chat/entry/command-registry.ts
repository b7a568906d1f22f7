import type { Dispose } from 'svc/sdk'
import type { CommandSurface, SlashCommand } from '../contract.ts'

/** The commands that `commands.ts` answers, and what else they are called. */
export const BUILT_IN = [
  'new',
  'sessions',
  'status',
  'agents',
  'compact',
  'model',
  'stop',
  'retry',
  'drop',
  'approvals',
  'approve',
  'reject',
  'usage',
  'think',
  'models',
  'providers',
  'help',
] as const
export type BuiltIn = (typeof BUILT_IN)[number]
export const ALIASES: Readonly<Record<string, BuiltIn>> = { reset: 'new' }

const NAME = /^[a-z][a-z0-9-]{0,31}$/

export const SURFACES = ['web', 'cli', 'channel'] as const satisfies readonly CommandSurface[]
const isOn = ({ surfaces = SURFACES }: SlashCommand, surface: CommandSurface | 'all'): boolean =>
  surface === 'all' || surfaces.includes(surface)

/** The commands that other plugins added. */
export class CommandRegistry {
  /** By name and alias. */
  readonly #commands = new Map<string, SlashCommand>()

  /** Throws when a name is taken or is none. */
  add(command: SlashCommand): Dispose {
    const names = [command.name, ...(command.aliases ?? [])]
    for (const name of names) {
      if (!NAME.test(name)) throw new Error(`"${name}" is no name of a slash command: lower case letters, digits and -`)
      if (this.#commands.has(name) || Object.hasOwn(ALIASES, name) || BUILT_IN.some((each) => each === name))
        throw new Error(`the slash command /${name} is there already`)
    }
    for (const name of names) this.#commands.set(name, command)
    return () => {
      for (const name of names) this.#commands.delete(name)
    }
  }

  find(name: string, surface: CommandSurface): SlashCommand | undefined {
    const found = this.#commands.get(name)
    return found && isOn(found, surface) ? found : undefined
  }
  /** In the order in which they were added. */
  list(surface: CommandSurface | 'all'): readonly SlashCommand[] {
    return [...new Set(this.#commands.values())].filter((command) => isOn(command, surface))
  }
}
