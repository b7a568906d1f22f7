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
