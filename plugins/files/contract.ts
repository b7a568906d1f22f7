import { defineService } from 'svc/sdk'

/** One plain file of a workspace. */
export interface WorkspaceFile {
  /** Relative to the workspace, `/` between its parts. */
  readonly name: string
  readonly sizeBytes: number
  /** ISO 8601 UTC; `null` when it is unknown. */
  readonly modifiedAt: string | null
  /** Why the file, or the folder of this name, cannot be read; its size and time are unknown then. */
  readonly problem?: string
}

/** Dispose of it once the program has ended. */
export interface WorkingFolder extends AsyncDisposable {
  /** Absolute. */
  readonly path: string
  /**
   * Keeps what the program changed, all of it or nothing. Throws with what was not kept and why: `conflict` when a file
   * that it changed was changed elsewhere meanwhile, `payload_too_large`. Links and empty folders are not kept in a copy.
   */
  save(): Promise<void>
}

/**
 * The folder of each agent's files, `<data_dir>/workspaces/<agent id>`. Every name is confined to it: `invalid_request`
 * for an invalid name, `forbidden` for one that leads out, through a link or to a hard-linked file. The id alone
 * decides whose workspace it is, so pass the id of the acting agent, never one from the arguments of a tool.
 */
export interface Workspaces {
  /**
   * A folder of this machine with the files of the workspace, for a program that ends: the workspace itself, or a copy of
   * it. Throws `payload_too_large` for a workspace of which no copy may be made.
   */
  open(agentId: string): Promise<WorkingFolder>
  /** Whether they are folders of this machine. Otherwise `root`, `resolve` and `within` throw `conflict`. */
  readonly isFolder: boolean
  /**
   * Absolute and real path of the folder, made with its identity files when it is missing. Throws `agent_not_found`.
   */
  root(agentId: string): Promise<string>
  /**
   * Absolute path of a name in it; the file need not exist. To check a name only: between check and use a program may
   * put a link there.
   */
  resolve(agentId: string, name: string): Promise<string>
  /**
   * Works in a folder of it (empty: the workspace itself), through a path that leads nowhere else whatever a program
   * swaps: see `inFolder`.
   */
  within<T>(
    agentId: string,
    folder: string,
    work: (path: string, made: boolean) => Promise<T>,
    options?: { readonly make?: boolean },
  ): Promise<T>
  /** Throws `file_not_found`, and `payload_too_large` beyond `maxBytes` (default: the limit of a file). */
  read(agentId: string, name: string, options?: { readonly maxBytes?: number }): Promise<Uint8Array>
  /** Throws `payload_too_large` for what `write` would refuse. */
  checkSize(name: string, size: number): void
  /** Makes missing folders and replaces the whole file at once, or nothing. Throws `payload_too_large`. */
  write(agentId: string, name: string, content: string | Uint8Array): Promise<{ readonly created: boolean }>
  /** `false` when there was none. */
  remove(agentId: string, name: string): Promise<boolean>
  /**
   * The plain files below `folder` (default: all of them) by name, at most `limit` (default 1000). Links are left out.
   */
  list(agentId: string, folder?: string, limit?: number): Promise<readonly WorkspaceFile[]>
}

/** The same for the routes of this plugin. */
export interface WorkspaceFiles extends Workspaces {
  /** Throws for a name that is none, or leads out of the workspace. */
  check(agentId: string, name: string): Promise<void>
}
export const Workspaces = defineService<Workspaces>()('workspaces')

/** A file uploaded for an agent, in the agent's workspace, where the agent may change or remove it. */
export interface Upload {
  readonly id: string
  readonly agentId: string
  readonly filename: string
  /** In the workspace. */
  readonly path: string
  /** By its bytes at the upload, whatever the sender declared. */
  readonly contentType: string
  readonly sizeBytes: number
}
export interface Uploads {
  find(fileId: string): Promise<Upload | undefined>
  /**
   * Throws `file_not_found` when the agent removed it, `payload_too_large` when it made it larger than an upload may
   * be.
   */
  read(upload: Upload): Promise<Uint8Array>
}
export const Uploads = defineService<Uploads>()('uploads')
