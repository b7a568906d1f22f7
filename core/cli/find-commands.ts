import { commandLine } from '../process/command-name.ts'
import { findBuiltIn, loadRegistry } from './command-registry.ts'
import type { CommandRegistry, Origin } from './command-registry.ts'
import type { CommandEntry, CommandTree } from './command.ts'
import { exits, Failure } from './failure.ts'
import { locateHomeIn } from './home-location.ts'
import { note } from './output.ts'

/** The commands that the first word may be one of. Throws a `Failure` for one that cannot be used. */
export async function findCommands(words: readonly string[]): Promise<CommandTree> {
  const [name = ''] = words
  const location = locateHomeIn(words)
  const registry = (await findBuiltIn(name, location)) ?? (await loadRegistry(location))
  for (const problem of registry.problems) note(`svc: warning: ${problem}`)
  refuseConflict(name, registry)
  const disabled = registry.disabled.get(name)
  if (!disabled || Object.hasOwn(registry.commands, name)) return registry.commands
  return { ...registry.commands, [name]: requireRemote(name, disabled, words) }
}

/** Which plugins another daemon has disabled is not known here. */
function requireRemote(name: string, { plugin = '', entry }: Origin, words: readonly string[]): CommandEntry {
  const isRemote = words.some((word) => /^--url(?:=|$)/.test(word)) || Boolean(process.env['SVC_URL']?.trim())
  if (isRemote) return entry
  const sources = commandLine('config get plugins.disabled --sources')
  throw new Failure(
    exits.usage,
    `the command "${name}" comes from plugin "${plugin}", which is disabled`,
    `take "${plugin}" out of plugins.disabled; ${sources} says where it is set`,
  )
}

function refuseConflict(name: string, { conflicts }: CommandRegistry): void {
  const plugins = conflicts.get(name)
  if (!plugins) return
  throw new Failure(
    exits.usage,
    `more than one plugin brings the command "${name}": ${plugins.join(', ')}`,
    'remove one of them, or add its name to plugins.disabled',
  )
}
