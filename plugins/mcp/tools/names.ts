import { createHash } from 'node:crypto'

const MAX_NAME = 64
const HASH_DIGITS = 8

export interface NamedTool {
  readonly server: string
  readonly tool: string
}

const slugOf = (text: string): string => text.toLowerCase().replace(/[^a-z0-9_]/g, '_')
/** What the names of the tools of a server begin with, and of no other server but those it is a part of. */
const prefixOf = (server: string): string => `mcp_${slugOf(server)}_`
/** `mcp_<server>_<tool>` of lower-case letters, digits and underscores. */
const plainName = ({ server, tool }: NamedTool): string => `${prefixOf(server)}${slugOf(tool)}`
const digitsOf = ({ server, tool }: NamedTool): string =>
  createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_DIGITS)

/** Cut, and ended with digits of a hash of the real name, which no other tool has. */
const hashedName = (named: NamedTool): string =>
  `${plainName(named).slice(0, MAX_NAME - HASH_DIGITS - 1)}_${digitsOf(named)}`

/** Outside of what the names of another server begin with: `b_c` of a server `a` beside a server `a-b`. */
const apartName = (named: NamedTool): string =>
  `${prefixOf(named.server)}${digitsOf(named)}_${slugOf(named.tool)}`.slice(0, MAX_NAME)

/**
 * The names that agents call tools by. Each depends on its tool, on the names of the servers and on the tools of the
 * same server only, never on what another server lists: no server takes a name, or what a pattern in a manifest grants,
 * from another. `isTaken`: by a tool of another plugin.
 */
export function nameTools<T extends NamedTool>(
  tools: readonly T[],
  servers: readonly string[],
  isTaken: (name: string) => boolean = () => false,
): ReadonlyMap<string, T> {
  const names = new Map<string, T>()
  // One that is called like that comes before those that are only written alike, in whatever order they are listed.
  const sorted = tools.toSorted((one, other) => Number(isExact(other)) - Number(isExact(one)))
  for (const tool of sorted) {
    const plain = plainName(tool)
    const isForeign = servers.some((server) => isInside(tool.server, server) && plain.startsWith(prefixOf(server)))
    const isUsable = plain.length <= MAX_NAME && !names.has(plain) && !isTaken(plain)
    const name = isForeign ? apartName(tool) : isUsable ? plain : hashedName(tool)
    if (!names.has(name)) names.set(name, tool)
  }
  return names
}
const isExact = ({ tool }: NamedTool): boolean => slugOf(tool) === tool
/** Whether the names of the other server begin with those of the server and go on. */
const isInside = (server: string, other: string): boolean =>
  server !== other && prefixOf(other).startsWith(prefixOf(server))
