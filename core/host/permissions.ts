import { matchesWildcard } from '../schema/wildcard.ts'
import type { AnyPlugin, Tokens } from './define.ts'

/**
 * What a plugin uses of the daemon and of the world. What is not declared here is refused when the plugin uses it. Its
 * own key-value storage, metrics, log and hooks need no declaration. The services of `requires` and `optional`, its
 * pages and its sections of the configuration are declared where they are defined.
 */
export interface PluginUses {
  /** Paths of its routes and sockets: `/api/weather`, or `/api/weather/*` for that path and everything below it. */
  readonly routes?: readonly string[]
  /** Ids of the hooks of other plugins it listens to, such as `daemon:listening`; `*` stands for any characters. */
  readonly hooks?: readonly string[]
  /** Names of the tools it registers or calls; `*` stands for any characters. */
  readonly tools?: readonly string[]
  /** Hosts it sends requests and connects to, as in `[outbound] allow`: `api.example.org`, `*.example.org`, `example.org:8443`. */
  readonly hosts?: readonly string[]
  /** It has tables. They are its own: it can never use those of others. */
  readonly tables?: boolean
  /** Names of the secrets it keeps in the vault; `true` for any. They are its own as well. */
  readonly secrets?: boolean | readonly string[]
  /** Programs it starts, such as `git`. They are confined and reach only the `hosts`. */
  readonly programs?: readonly string[]
  /** It has recurring work. */
  readonly jobs?: boolean
  /** It opens ports of its own. Known to whoever installs it; only `isolation = "worker"` can refuse it. */
  readonly listeners?: boolean
  /** It accepts bearer credentials beside the API key. */
  readonly credentials?: boolean
}

/** The permissions a plugin declares, sorted, such as `hook:daemon:listening`, `host:api.example.org`, `program:git`. */
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
