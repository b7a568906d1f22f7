import type { Program } from './program.ts'

/** How an untrusted program is confined on this machine. */
export interface Isolation {
  /**
   * `bubblewrap`: its own namespaces, which contain only what it may use. `landlock`: the kernel denies it everything
   * else. `none`: a process group and resource limits; untrusted programs run only if the operator allows it.
   */
  readonly level: 'bubblewrap' | 'landlock' | 'none'
  /** `proxy`: what the network rules and its host patterns permit. `host`: everything this machine can reach. */
  readonly network: 'proxy' | 'none' | 'host'
  /** What the confinement does not cover, in words for the operator. */
  readonly gaps: readonly string[]
}
/** Throws or rejects to refuse a connection of a program. Called for each one, before the network rules. */
export type Admission = (url: URL) => void | Promise<void>
/** Hears which connection of a program was refused or failed, and why. */
export type ConnectionFailure = (url: URL, why: string) => void

/** A program to run. Its arguments are passed one by one: no shell interprets them. */
export interface SpawnRequest {
  /** A name, searched for in the safe folders, or a path. */
  readonly command: string
  /** The arguments of the command. */
  readonly args?: readonly string[]
  /** Absolute folder it starts in; temporary files go into `.tmp` in it. */
  readonly cwd: string
  /** Absolute folder that is its home; `cwd` when absent. */
  readonly home?: string
  /** `closed` (default): its standard input is at its end. `open`: `write` reaches it. */
  readonly input?: 'closed' | 'open'
  /** Milliseconds until it is killed: 30,000 when absent, at most 120,000 unless it runs in the background. */
  readonly timeoutMs?: number
  /** Milliseconds without output until it is killed. Absent: no limit. */
  readonly silenceMs?: number
  /** It may outlive a call: it ends at `timeoutMs`, which is required then, or with its plugin. */
  readonly background?: boolean
  /** Bytes of stdout and stderr that are kept; the oldest are dropped (default 1 MiB). */
  readonly outputBytes?: number
  /**
   * `operator`: the operator chose the command and its arguments. It may use the system and its network except for the
   * daemon's own folders, and writes to no folder that code is loaded from. Absent: it is untrusted and confined to
   * `cwd`, a private /tmp and the system's programs.
   */
  readonly trust?: 'operator'
  /** Which connections an untrusted program may make, through a proxy. Absent: it has no network. */
  readonly network?: Admission
  /** Called with each connection that was refused or failed: most programs do not say why. */
  readonly onConnectionFailure?: ConnectionFailure
  /** Further folders it may read, or write. Checked as `checkFolders` does. */
  readonly read?: readonly string[]
  /** Further folders it may write. Checked as `checkFolders` does. */
  readonly write?: readonly string[]
  /**
   * It confines parts of itself, as a browser does with each page: an untrusted program may then make namespaces of its
   * own, is no root in its namespace, and reserves as much address space as it likes; what it uses stays limited.
   */
  readonly confinesItself?: boolean
  /** An untrusted program may run on a machine that cannot confine it. */
  readonly unconfined?: boolean
  /** Folders with programs after the safe ones. */
  readonly path?: readonly string[]
  /** Called with each chunk of its output as it arrives, in addition to what is kept. */
  readonly onOutput?: (bytes: Uint8Array, from: 'stdout' | 'stderr') => void
  /** Variables added to the clean environment; a name that looks like a secret must be in `approvedEnv` too. */
  readonly env?: Readonly<Record<string, string>>
  /** Names in `env` that look like a secret and may be passed. */
  readonly approvedEnv?: readonly string[]
  /** Kills the program when it aborts. */
  readonly signal?: AbortSignal
}
/** How a program ended. */
export interface Exit {
  /** The exit code; `null` when a signal ended it. */
  readonly code: number | null
  /** The name of the signal that ended it, such as `SIGKILL`; `null` otherwise. */
  readonly signal: string | null
  /** `exit`: it ended by itself. Otherwise why it was killed. */
  readonly reason: 'exit' | 'timeout' | 'silence' | 'killed'
  /** How long it ran, in milliseconds. */
  readonly durationMs: number
}
/** A running program in its own process group. Everything it starts ends with it. */
export interface Child {
  /** Its process id, which is also the id of its process group. */
  readonly pid: number
  /** Whether it has not ended yet. */
  readonly running: boolean
  /** Resolves when the program has accepted the text. Throws `conflict` when it no longer reads input. */
  write(text: string | Uint8Array): Promise<void>
  /** Ends its standard input after what was written. */
  closeInput(): void
  /** Its output since the last call, in the order of arrival. The oldest bytes are dropped beyond `outputBytes`. */
  read(): { readonly text: string; readonly droppedBytes: number }
  /** Calls `network` again for each open connection and closes those that are refused now. */
  recheckNetwork(): Promise<void>
  /** Ends it and everything it started: SIGTERM first, SIGKILL after three seconds. */
  kill(): Promise<Exit>
  /** Resolves when it and everything it started have ended. Never rejects. */
  readonly ended: Promise<Exit>
}
/** Starts other programs. A program ends with its plugin at the latest. */
export interface Spawn {
  /** Throws `invalid_request` when there is no such program, `forbidden` for a path with `..` in it. */
  find(command: string, cwd: string, path?: readonly string[]): Promise<Program>
  /**
   * Whether a program of this name exists in the safe folders or `path`. Reads the file system: a few microseconds per
   * folder.
   */
  has(name: string, path?: readonly string[]): boolean
  /** Throws like `find`, `rate_limit` when too many programs run already, and the reason of an aborted signal. */
  start(request: SpawnRequest): Promise<Child>
  /** How an untrusted program is confined on this machine. */
  isolation(): Promise<Isolation>
  /** Throws `forbidden` for a folder that untrusted programs may never use, with the key that names it. */
  checkFolders(kind: 'read' | 'write', key: string, folders: readonly string[]): void
  /** Throws `forbidden` for a workspace in, or above, a folder that code or configuration is loaded from. */
  checkWorkspace(folder: string): void
  /** Folders that code and configuration are loaded from, and those hidden from untrusted programs. */
  protectedFolders(): { readonly code: readonly string[]; readonly hidden: readonly string[] }
  /**
   * Names of the secrets that can still be read in the environment the daemon was started with, and why they could not
   * be overwritten.
   */
  exposed(): { readonly names: readonly string[]; readonly because: string | undefined }
}
