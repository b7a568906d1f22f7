import type { McpTransport } from '../contract.ts'
import type { ServerEntry } from '../config.ts'

/** A server as it is run: from the file, or from the database. */
export interface ServerConfig extends Omit<ServerEntry, 'transport' | 'protocol'> {
  readonly transport: McpTransport
  readonly protocol: 'auto' | 'initialize'
  /** `file`, `api`, or what added it. */
  readonly origin: string
  /** Names of variables whose values are in the vault. */
  readonly credentials: readonly string[]
  /** Variables that are no secrets. */
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/** The origin of a server of the file, which has rights that no row has. */
export const FROM_FILE = 'file'

export function fromFile(entry: ServerEntry): ServerConfig {
  const transport = entry.transport ?? (entry.command === undefined ? 'http' : 'stdio')
  return {
    ...entry,
    transport,
    protocol: entry.protocol ?? (transport === 'http' ? 'auto' : 'initialize'),
    origin: FROM_FILE,
    credentials: [],
  }
}
