import type { Broadcast } from '../../core/storage/broadcast.ts'
import { noBroadcast } from '../../core/storage/broadcast.ts'
import type { PluginDatabase } from '../../core/storage/database.ts'
import { parse } from '../../core/schema/parse.ts'
import type { Clock } from '../../core/scope/clock.ts'
import { Settings } from '../../plugins/queue/config.ts'
import { EmbeddedDriver } from '../../plugins/queue/embedded/store.ts'
import { DatabaseQueue } from '../../plugins/queue/service.ts'

export interface EmbeddedQueueOptions {
  readonly db: PluginDatabase
  readonly settings?: object
  readonly clock: Clock
  readonly background: (work: () => Promise<void>) => void
  readonly broadcast?: Broadcast
}

const log = { debug() {}, info() {}, warn() {}, error() {} }

/** The queue of a daemon that a test is made of, which retries without a pause. */
export function embeddedQueue({ db, settings, clock, background, broadcast }: EmbeddedQueueOptions): DatabaseQueue {
  const parsed = parse(Settings, { lease_secs: 5, ...settings })
  return new DatabaseQueue({
    driver: new EmbeddedDriver({ db, settings: parsed, owner: 'home', clock, lost() {} }),
    settings: parsed,
    broadcast: broadcast ?? noBroadcast('test'),
    clock,
    random: () => 0,
    log,
    background,
    counted() {},
  })
}
