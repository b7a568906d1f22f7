import type * as Foreign from './foreign-database.ts'

/** Loaded with the first database of another system, not with every start. */
export const openForeignDatabase = async (file: string): Promise<Foreign.ForeignDatabase> =>
  (await import('./foreign-database.ts')).openForeignDatabase(file)
