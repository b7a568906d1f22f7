import type { Program } from './program.ts'

/** How a program of an agent is kept apart on this machine. */
export interface Isolation {
  /**
   * `bubblewrap`: namespaces of its own, in which there is nothing but what it may use. `landlock`: the kernel
   * refuses it the rest. `none`:
   * a process group and limits; nothing of an agent runs then unless the operator says so.
   */
  readonly level: 'bubblewrap' | 'landlock' | 'none'
  /** `proxy`: what the network rules and the agent's own host patterns permit. `host`: all this machine reaches. */
  readonly network: 'proxy' | 'none' | 'host'
  /** What it does not cover, in words for the operator. */
  readonly gaps: readonly string[]
}
/** Throws, or rejects, to refuse a program a connection. Asked for each, before the network rules. */
export type Admission = (url: URL) => void | Promise<void>

/** A program to run. Its words are given one by one: no shell reads them. */
export interface SpawnRequest {
  /** A name, looked for in the safe folders, or a path. */
  readonly command: string
  /** The words after the command. */
  readonly args?: readonly string[]
  /** Absolute folder it starts in; temporary files go into `.tmp` in it. */
  readonly cwd: string
  /** Absolute folder that is its home; `cwd` when absent. */
  readonly home?: string
  /** `closed` (default): it reads an end. `open`: `write` reaches it. */
  readonly input?: 'closed' | 'open'
  /** Milliseconds until it is ended: 30,000 when absent, at most 120,000 unless it lives in the background. */
  readonly timeoutMs?: number
  /** Milliseconds without a word from it until it is ended; absent: as long as it lives. */
  readonly silenceMs?: number
  /** It may live longer than a call: until its own time limit, which must be given, or its plugin ends. */
  readonly background?: boolean
  /** Bytes of stdout and stderr that are kept, the end of them (default 1 MiB). */
  readonly outputBytes?: number
  /**
   * `operator`: the operator chose it and its words, such as the command line of a model provider. It has the system
   * and its network but for
   * the daemon's own folders, and writes to none that code is loaded from. Absent: it is confined as that of an
   * agent, to `cwd`, a private /tmp
   * and the system's programs.
   */
  readonly trust?: 'operator'
  /** Of an agent: which connections it may make, through a proxy. Absent: it has no network. */
  readonly network?: Admission
  /** Further folders it may read, or write. Checked as `checkFolders` does. */
  readonly read?: readonly string[]
  /** Further folders it may write. Checked as `checkFolders` does. */
  readonly write?: readonly string[]
  /** Of an agent: it may run on a machine that cannot confine it. */
  readonly unconfined?: boolean
  /** Folders with programs after the safe ones. */
  readonly path?: readonly string[]
  /** Told of each piece of what it writes, as it comes, beside what is kept. */
  readonly heard?: (bytes: Uint8Array, from: 'stdout' | 'stderr') => void
  /** Values on top of the scrubbed environment; a name that looks like a secret must be in `approvedEnv` too. */
  readonly env?: Readonly<Record<string, string>>
  /** Names in `env` that look like a secret and are meant to be given. */
  readonly approvedEnv?: readonly string[]
  /** Ends it when it aborts. */
  readonly signal?: AbortSignal
}
/** How it ended. `code` is `null` when a signal ended it. */
export interface Exit {
  /** The exit code; `null` when a signal ended it. */
  readonly code: number | null
  /** The name of the signal that ended it, such as `SIGKILL`; `null` otherwise. */
  readonly signal: string | null
  /** `exit`: by itself. Otherwise why it was ended. */
  readonly reason: 'exit' | 'timeout' | 'silence' | 'killed'
  /** How long it ran, in milliseconds. */
  readonly durationMs: number
}
/** A running program, in a process group of its own. What it started ends with it. */
export interface Child {
  /** Its process id, which is also that of its group. */
  readonly pid: number
  /** Whether it has not ended yet. */
  readonly running: boolean
  /** Settles when it has taken the text. Throws `conflict` when it reads no more. */
  write(text: string | Uint8Array): Promise<void>
  /** It reads an end after what was written. */
  closeInput(): void
  /** What it wrote to stdout and stderr since the last time, in the order in which it arrived; of too much, the end. */
  read(): { readonly text: string; readonly droppedBytes: number }
  /** Asks `network` again for each connection it has, and ends those that are refused now. */
  recheckNetwork(): Promise<void>
  /** Ends it and all it started: asks first, and insists after three seconds. */
  kill(): Promise<Exit>
  /** Settles when it and all it started are gone. Never rejects. */
  readonly ended: Promise<Exit>
}
/** The one door to other programs. What is started ends with the plugin at the latest. */
export interface Spawn {
  /** Throws `invalid_request` when there is no such program, `forbidden` for a path with `..` in it. */
  find(command: string, cwd: string, path?: readonly string[]): Promise<Program>
  /**
   * Whether there is a program of this name in the safe folders or `path`. Looks at the disk, a few microseconds a
   * folder.
   */
  has(name: string, path?: readonly string[]): boolean
  /** Throws like `find`; `rate_limit` when too many run already, and the signal's reason. */
  start(request: SpawnRequest): Promise<Child>
  /** How far a program of an agent is kept apart on this machine. */
  isolation(): Promise<Isolation>
  /** Throws `forbidden` for a folder that programs of agents must never get, with the key that names it. */
  checkFolders(kind: 'read' | 'write', key: string, folders: readonly string[]): void
  /** Throws `forbidden` for a workspace that lies in, or holds, a folder that code or configuration is loaded from. */
  checkWorkspace(folder: string): void
  /** Folders that code and configuration are loaded from, and those that no program of an agent sees. */
  protectedFolders(): { readonly code: readonly string[]; readonly hidden: readonly string[] }
  /**
   * Secrets of the environment the daemon was started with that stand there still, by name, and why they could not be
   * overwritten.
   */
  exposed(): { readonly names: readonly string[]; readonly because: string | undefined }
}
