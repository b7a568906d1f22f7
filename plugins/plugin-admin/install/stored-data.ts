import type * as v from 'valibot'
import type { PluginData } from 'svc/internal'
import type { StoredData, UninstallRequest } from '../schema.ts'
import type { UninstallOptions } from './service.ts'

export function toOptions(request: v.InferOutput<typeof UninstallRequest>): UninstallOptions {
  return { force: request.force, deletesData: request.delete_data, isDryRun: request.dry_run }
}

export function isEmpty(data: PluginData | undefined): boolean {
  return !data || (data.tables.length === 0 && data.values === 0 && data.secrets.length === 0)
}

export function toStoredData(data: PluginData | undefined): v.InferOutput<typeof StoredData> | null {
  if (!data) return null
  const { tables, values, secrets } = data
  return { tables: tables.map((table) => ({ ...table })), values, secrets: [...secrets] }
}

/** For the audit trail: names and counts, no value. */
export function describeStored({ tables, values, secrets }: PluginData): string {
  const listed = tables.map(({ name, rows }) => `${name} (${rows})`).join(', ')
  return `tables with rows: ${listed || 'none'}; stored values: ${values}; secrets: ${secrets.join(', ') || 'none'}`
}
