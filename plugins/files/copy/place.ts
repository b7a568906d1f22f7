import type { WorkspaceFile } from '../contract.ts'

/** Where workspaces lie: a folder, or the database with or without a bucket. */
export interface Place {
  /** For a person, such as `the database`. */
  readonly label: string
  /** Ids of the agents that have a workspace there. */
  ids(): Promise<readonly string[]>
  /** Whether the workspace is there and not the beginning of a copy. */
  isWhole(agentId: string): Promise<boolean>
  /** Also of the beginning of a copy; none when there is nothing. */
  files(agentId: string): Promise<readonly Pick<WorkspaceFile, 'name' | 'sizeBytes' | 'problem'>[]>
  /** Throws `forbidden` or `file_not_found` for a file that cannot be read, and stays so. */
  read(agentId: string, name: string): Promise<Uint8Array>
  /** Durable when it settles. */
  put(agentId: string, name: string, content: Uint8Array): Promise<void>
  remove(agentId: string, name: string): Promise<void>
  /** What was put is a whole workspace now. */
  finish(agentId: string): Promise<void>
}
