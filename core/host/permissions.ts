import { matchesWildcard } from '../schema/wildcard.ts'
import type { AnyPlugin, Tokens } from './define.ts'

/**
 * The permissions a plugin declares, sorted, such as `hook:daemon:listening`, `host:api.example.org`, `program:git`.
 */
export function permissionsOf(definition: AnyPlugin): readonly string[] {
  const { uses = {}, requires, optional, pages = [], sections = {}, outbound } = definition
  const { secrets = false } = uses
  const flags = { tables: uses.tables, jobs: uses.jobs, listeners: uses.listeners, credentials: uses.credentials }
  const found = [
    ...prefixed('route', uses.routes),
    ...prefixed('hook', uses.hooks),
    ...prefixed('tool', uses.tools),
    ...prefixed('host', uses.hosts),
    ...prefixed('program', uses.programs),
    ...prefixed('secret', typeof secrets === 'boolean' ? (secrets ? ['*'] : []) : secrets),
    ...prefixed('service', [...idsOf(requires), ...idsOf(optional)]),
    ...prefixed(
      'page',
      pages.map(({ path }) => path),
    ),
    ...prefixed('section', Object.keys(sections)),
    ...(outbound === undefined ? [] : [`outbound:${outbound}`]),
    ...Object.entries(flags).flatMap(([name, used]) => (used === true ? [name] : [])),
  ]
  return [...new Set(found)].sort()
}

/** What `after` permits and `before` does not, sorted. A pattern covers what it matches. */
export function newPermissions(before: readonly string[], after: readonly string[]): readonly string[] {
  return after.filter((permission) => !before.some((known) => coversPermission(known, permission))).sort()
}

/** Whether a permission with `*` for any characters includes another one. */
export function coversPermission(known: string, permission: string): boolean {
  return matchesWildcard(known, permission) || (known.endsWith('/*') && known.slice(0, -2) === permission)
}

function prefixed(kind: string, names: readonly string[] = []): readonly string[] {
  return names.map((name) => `${kind}:${name}`)
}
function idsOf(tokens: Tokens = {}): readonly string[] {
  return Object.values(tokens).map(({ id }) => id)
}
