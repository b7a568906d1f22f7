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
  /** A process that was killed claims nothing more. */
  readonly isDead?: () => boolean
}

const log = { debug() {}, info() {}, warn() {}, error() {} }

/** The queue of a daemon that a test is made of, which retries without a pause. */
export function embeddedQueue(options: EmbeddedQueueOptions): DatabaseQueue {
  const { db, settings, clock, background, broadcast, isDead = () => false } = options
  const parsed = parse(Settings, { lease_secs: 5, ...settings })
  const driver = new EmbeddedDriver({ db, settings: parsed, owner: 'home', clock, log, lost() {} })
  const claim = driver.claim.bind(driver)
  driver.claim = (lane) => (isDead() ? Promise.resolve(undefined) : claim(lane))
  return new DatabaseQueue({
    driver,
    settings: parsed,
    broadcast: broadcast ?? noBroadcast('test'),
    clock,
    random: () => 0,
    log,
    background,
    counted() {},
  })
}
