import { createHash } from 'node:crypto'

const MAX_NAME = 64
const HASH_DIGITS = 8

export interface NamedTool {
  readonly server: string
  readonly tool: string
}

/** `mcp_<server>_<tool>` of lower-case letters, digits and underscores. */
const plainName = ({ server, tool }: NamedTool): string =>
  `mcp_${server}_${tool}`.toLowerCase().replace(/[^a-z0-9_]/g, '_')

/** Cut, and ended with digits of a hash of the real name, which no other tool has. */
function hashedName(named: NamedTool): string {
  const digits = createHash('sha256').update(`${named.server}\0${named.tool}`).digest('hex').slice(0, HASH_DIGITS)
  return `${plainName(named).slice(0, MAX_NAME - HASH_DIGITS - 1)}_${digits}`
}

/**
 * The names that agents call tools by. A name that is too long or that an earlier one took gets a hash, so the same
 * tools in the same order always have the same names. `isTaken`: by a tool of another plugin.
 */
export function nameTools<T extends NamedTool>(
  tools: readonly T[],
  isTaken: (name: string) => boolean = () => false,
): ReadonlyMap<string, T> {
  const names = new Map<string, T>()
  for (const tool of tools) {
    const plain = plainName(tool)
    const name = plain.length > MAX_NAME || names.has(plain) || isTaken(plain) ? hashedName(tool) : plain
    if (!names.has(name)) names.set(name, tool)
  }
  return names
}
