import * as v from 'valibot'
import type { OfflineDeps } from 'svc/internal'
import { Settings } from './config.ts'

const Config = v.looseObject({ plugins: v.looseObject({ queue: v.optional(v.record(v.string(), v.unknown()), {}) }) })

/** What a daemon of this home would work with on PostgreSQL, where all have to work with the same. */
export function agreementOf({ config }: Pick<OfflineDeps, 'config'>): { readonly key: string; readonly value: string } {
  const { driver } = v.parse(Settings, v.parse(Config, config).plugins.queue)
  return { key: 'plugins.queue.driver', value: driver === 'auto' ? 'pg-boss' : driver }
}
