export type McpTransport = 'stdio' | 'http' | 'sse'

/** What a server is: how to reach it, and what bounds it. */
export interface McpServerSpec {
  /** `^[a-z0-9][a-z0-9-]{0,31}$`. */
  readonly name: string
  readonly transport: McpTransport
  /** Of `stdio`. */
  readonly command?: string | undefined
  readonly args?: readonly string[] | undefined
  /** Of `http` and `sse`. */
  readonly url?: string | undefined
  /** Headers of every request, by name; values are secrets. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Names of environment variables that the program gets. */
  readonly env?: readonly string[] | undefined
  /** Hosts that a confined program may reach, as patterns. */
  readonly network?: readonly string[] | undefined
  /** Seconds a call may take. */
  readonly timeout_secs?: number | undefined
  /** Started with its first use, and stopped when it is idle. */
  readonly lazy?: boolean | undefined
  readonly enabled?: boolean | undefined
}

/** How a server is added by another plugin, such as `integrations`. */
export interface McpServerAddition extends McpServerSpec {
  /** Values of variables in `env`, by name. They go to the vault. */
  readonly credentials?: Readonly<Record<string, string>> | undefined
  /** Values of further variables that are no secrets, such as the path of a file. Only their names are shown. */
  readonly variables?: Readonly<Record<string, string>> | undefined
  /** The client that was registered with the vendor by hand, and the scopes to ask for, of a server with a login. */
  readonly oauth?:
    | {
        readonly client_id?: string | undefined
        /** Goes to the vault. */
        readonly client_secret?: string | undefined
        /** PEM of the key that signs its requests for tokens, instead of a secret. Goes to the vault. */
        readonly private_key?: string | undefined
        readonly scopes?: readonly string[] | undefined
        /** `client_credentials`: the client itself logs in, nobody is asked. Default: `authorization_code`. */
        readonly grant?: 'authorization_code' | 'client_credentials' | undefined
      }
    | undefined
  /** Who added it, such as `integration:github`; shown in the view. */
  readonly origin?: string | undefined
}

/** The program of a server that was added, as its row says it. */
export interface McpProgram {
  readonly name: string
  readonly origin: string
  readonly command: string
  readonly args: readonly string[]
  /** Names of its variables. */
  readonly env: readonly string[]
}
/** What a program may do besides what the API can say, as the configuration file of this daemon has it. */
export interface McpProgramRights {
  /** `operator`: it runs unconfined. */
  readonly trust?: 'operator' | undefined
  /** Further folders that it may read when it is confined. */
  readonly read?: readonly string[] | undefined
  /** Further folders that it may write when it is confined. */
  readonly write?: readonly string[] | undefined
}
/**
 * Asked before each start of a program: who can write to the database can change its row, so what widens its rights
 * comes from the configuration file only. A program that nobody is asked about is confined to its own folder.
 */
export type DecideRights = (program: McpProgram) => Promise<McpProgramRights>
