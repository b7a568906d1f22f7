/**
 * What the operator accepted for installed plugins, by folder. An installed plugin loads only if everything it declares
 * is accepted, and what it does not declare is refused.
 */
export interface PermissionRecord {
  /** `undefined` for a folder that was not installed, and where nothing is known to be accepted. */
  of(folder: string): readonly string[] | undefined
  /** Whether the plugin in the folder was installed, also if what was accepted for it is lost. */
  isInstalled(folder: string): boolean
  /** Why the plugin in the folder may not be loaded: it was installed, and what was accepted for it is lost. */
  problem(folder: string): string | undefined
  /** Durable before it settles. The plugin in the folder is loaded with these from now on. */
  accept(folder: string, permissions: readonly string[]): Promise<void>
  /** Durable before it settles. For a plugin that was removed. */
  forget(folder: string): Promise<void>
}

export type EntriesByFolder = Readonly<Record<string, readonly string[]>>
/** With the reason if the file is there and cannot be used: then nothing is known to be accepted. */
export interface ReadEntries {
  readonly entries: EntriesByFolder
  readonly problem?: string
}
