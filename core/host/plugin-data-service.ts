import type { Database, Statement } from '../storage/database.ts'
import type { PluginData } from '../storage/plugin-data.ts'
import { defineService } from './define.ts'

export type { PluginData }

/** Tables, values and secrets of plugins that do not ship with the daemon. Provided by the core. */
export interface PluginDataService {
  describe(plugin: string): Promise<PluginData>
  /** In one batch with the statements. The plugin must not be loaded. */
  delete(plugin: string, entries: readonly Statement[]): Promise<void>
}
export const PluginDataService = defineService<PluginDataService>()('plugin-data')

/** `names`: of all plugins whose code was read. */
export function createPluginData(
  database: Pick<Database, 'sql' | 'scrub'>,
  names: () => readonly string[],
): PluginDataService {
  return {
    describe: async (plugin) => (await import('../storage/plugin-data.ts')).describeData(database.sql, plugin, names()),
    delete: async (plugin, entries) =>
      (await import('../storage/plugin-data.ts')).deleteData(database, plugin, names(), entries),
  }
}
