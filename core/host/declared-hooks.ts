import type { ConsolaInstance } from 'consola'
import type { Hooks } from '../hooks/hook.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import {
  AuthenticationFailed,
  DaemonListening,
  DaemonStopping,
  DatabaseCopying,
  ListeningStarting,
  PluginChanged,
  UnrecordedChange,
} from './daemon.ts'
import type { AnyPlugin } from './define.ts'
import { PluginProblem } from './definition.ts'

/**
 * Hooks that are looked at when a plugin begins to listen: a misspelt id would wait for ever, and a gate would never be
 * asked.
 */
export function checkedHooks(
  hooks: Hooks,
  plugin: string,
  known: () => readonly AnyPlugin[],
  log: ConsolaInstance,
): Hooks {
  return {
    ...hooks,
    on(hook, listener) {
      const problem = findProblem(hook, plugin, known())
      if (problem?.isCertain === true) throw new PluginProblem(problem.text)
      if (problem) log.warn(`plugin "${plugin}": ${problem.text}`)
      hooks.on(hook, listener)
    },
  }
}

const ofCore: readonly { readonly id: string }[] = [
  AuthenticationFailed,
  DaemonListening,
  DaemonStopping,
  DatabaseCopying,
  ListeningStarting,
  PluginChanged,
  UnrecordedChange,
]
const ownerOf = (id: string): string => id.slice(0, Math.max(0, id.indexOf(':')))

/** Certain where the owner of the hook says which it has; one that is not here may come. */
function findProblem(
  { id }: { readonly id: string },
  plugin: string,
  known: readonly AnyPlugin[],
): { readonly text: string; readonly isCertain: boolean } | undefined {
  const declared = [...ofCore, ...known.flatMap(({ hooks = [] }) => hooks)].map((hook) => hook.id)
  const owner = ownerOf(id)
  if (declared.includes(id) || owner === plugin) return undefined
  const isOwned = declared.some((one) => ownerOf(one) === owner)
  // A plugin that declares none may have any.
  if (!isOwned && known.some(({ name }) => name === owner)) return undefined
  const nearest = findNearest(id, declared)
  // Its plugin may be switched off, or come later.
  if (!isOwned && nearest === undefined) return undefined
  const text = `it listens to "${id}", and no plugin has a hook of this id${suggest(nearest)}`
  return { text, isCertain: isOwned }
}
