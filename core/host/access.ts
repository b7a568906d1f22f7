import type { AnyPlugin } from './define.ts'
import { PluginProblem } from './definition.ts'
import type { HostDeps } from './host-deps.ts'
import { newPermissions, permissionsOf } from './permissions.ts'

/**
 * What a plugin may use. `built-in`: everything. `unrestricted`: everything, because the operator wrote it and it
 * declares nothing. `declared`: what it declares.
 */
export type Access = 'built-in' | 'unrestricted' | 'declared'

/** Throws `PluginProblem` for an installed plugin that declares more than was accepted. */
export function checkAccess(
  definition: AnyPlugin,
  folder: string,
  { builtIns, accepted, isIsolated }: Pick<HostDeps, 'builtIns' | 'accepted' | 'isIsolated'>,
): Access {
  if (builtIns.has(folder)) return 'built-in'
  const problem = accepted.problem(folder)
  if (problem !== undefined) throw new PluginProblem(problem)
  const permissions = accepted.of(folder)
  if (permissions === undefined)
    return definition.uses === undefined && !isIsolated(folder) ? 'unrestricted' : 'declared'
  const added = newPermissions(permissions, permissionsOf(definition))
  if (added.length > 0)
    throw new PluginProblem(`it uses more than was accepted: ${added.join(', ')}; install it again to accept that`)
  return 'declared'
}
