import { currentActor, describeActor, messageOf, noteRecorded } from 'svc/internal'
import { commandLine, omitUndefined } from 'svc/sdk'
import type { PluginDatabase } from 'svc/sdk'
import type { AnchorFile, Tip } from './anchor.ts'
import { ChainWalk, ORIGIN } from './chain.ts'
import type { Link } from './chain.ts'
import { describeChange } from './changes.ts'
import { clean } from './clean.ts'
import type { Audit, AuditEntry, AuditFeed, AuditRecord } from './contract.ts'
import type { Verdict } from './schema.ts'
import { AuditStore } from './store.ts'
import { Checkpoints } from './tree/checkpoints.ts'
import type { Signer } from './tree/signer.ts'
import { checkpointText, originText, TreeStore } from './tree/store.ts'
import type { Writers } from './writers/writers.ts'

const PAGE = 1_000
const ANCHOR_MS = 1_000
/** Entries after which a checkpoint is signed before its time. */
const CHECKPOINT_ENTRIES = 1_000
const ACTOR_BYTES = 512
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

export interface AuditLog {
  warn(message: string, facts?: object): void
  error(message: string, facts?: object): void
}

export interface AuditTrailDeps {
  readonly db: PluginDatabase
  readonly anchor: AnchorFile
  readonly signer: Signer
  readonly log: AuditLog
  /** Where other daemons may write to the same database. */
  readonly writers?: Writers | undefined
}

/** Appends to the chain, keeps the anchor near its end, and checks both. */
export class AuditTrail implements Audit, AuditFeed {
  readonly store: AuditStore
  readonly checkpoints: Checkpoints
  readonly #anchor: AnchorFile
  readonly #log: AuditLog
  readonly #writers: Writers | undefined
  /** The newest checkpoint when this daemon last looked. */
  #seenCheckpoint = 0
  #timer: NodeJS.Timeout | undefined
  #anchoring: Promise<void> = Promise.resolve()
  #verifying: Promise<Verdict> | undefined
  #uncovered = 0
  #closed = false
  readonly #listeners = new Set<() => void>()
  readonly #announce = (): void => {
    for (const listener of this.#listeners) listener()
  }

  constructor({ db, anchor, signer, log, writers }: AuditTrailDeps) {
    this.store = new AuditStore(db, writers)
    this.#writers = writers
    this.checkpoints = new Checkpoints({
      store: new TreeStore(db),
      trail: this.store,
      signer,
      log,
      now: () => new Date().toISOString(),
    })
    this.#anchor = anchor
    this.#log = log
  }

  entry(record: AuditRecord) {
    this.#armAnchor()
    this.#uncovered++
    const actor = record.actor ?? currentActor()
    const changed = record.change ? describeChange(record.change) : ''
    noteRecorded()
    const statement = this.store.append({
      timestamp: new Date().toISOString(),
      event_type: record.event,
      agent_id: agentOf(record),
      details: clean(changed === '' ? record.details : `${record.details}: ${changed}`),
      actor: actor === undefined ? '' : clean(describeActor(actor), ACTOR_BYTES),
    })
    return { ...statement, written: this.#announce }
  }

  /** Entries that were on disk before the call can be read from the store after it. */
  async number(): Promise<void> {
    await this.#writers?.number()
  }

  async write(record: AuditRecord): Promise<void> {
    await this.store.write(this.entry(record))
  }

  async entries(
    agentId: string,
    { limit, before }: { readonly limit: number; readonly before?: number },
  ): Promise<readonly AuditEntry[]> {
    await this.number()
    const links =
      before === undefined
        ? (await this.store.recent(limit, { agentId, eventType: undefined })).toReversed()
        : await this.store.concerning(agentId, before, limit)
    return links.map(toEntry)
  }
  async following(after: number, limit: number): Promise<readonly AuditEntry[]> {
    await this.number()
    return (await this.store.after(after, limit)).map(toEntry)
  }
  async newest(): Promise<number> {
    await this.number()
    return (await this.store.tip())?.id ?? 0
  }
  onAppended(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Reads the database, not memory, so that an edit under a running daemon is found. Calls at the same time share one
   * walk.
   */
  verify(): Promise<Verdict> {
    this.#verifying ??= this.#walk().finally(() => {
      this.#verifying = undefined
    })
    return this.#verifying
  }

  async #walk(): Promise<Verdict> {
    const { walkTrail } = await import('./walk.ts')
    return walkTrail({
      trail: this.store,
      tree: this.checkpoints.store,
      anchor: this.#anchor,
      signer: this.checkpoints.signer,
      ...omitUndefined({ writers: this.#writers }),
    })
  }

  /** Moves the anchor to the end of the chain, if what lies between links up. One at a time. */
  anchor(): Promise<void> {
    const next = this.#anchoring.then(() => this.#moveAnchor())
    // A failure is the caller's; the next move starts afresh.
    this.#anchoring = next.then(
      () => undefined,
      () => undefined,
    )
    return next
  }

  /** Records that the operator had the anchor set anew, once it is. */
  async recordReset(): Promise<void> {
    const replaced = this.#anchor.replaced()
    if (!replaced) return
    const state = await this.#anchor.read()
    if (state.kind !== 'known') return
    const before = replaced.count === undefined ? 'it was missing or not readable' : `it was at entry ${replaced.count}`
    await this.write({
      event: 'audit_anchor_reset',
      details: `the anchor of the audit trail was set anew at entry ${state.tip.count}; ${before}`,
    })
    await this.#anchor.forgetReplaced()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.anchor()
    await this.checkpoint()
  }

  /** Signs a checkpoint over all entries, if there are new ones. */
  async checkpoint(): Promise<void> {
    this.#uncovered = 0
    await this.number()
    await this.checkpoints.take()
  }
  /** The same from time to time. One of the daemons on a database is enough: who is late leaves it to the other. */
  async checkpointInTurn(): Promise<void> {
    if (this.#writers) {
      const size = (await this.checkpoints.store.newest())?.size ?? 0
      const isOthers = size !== this.#seenCheckpoint
      this.#seenCheckpoint = size
      if (isOthers) return
    }
    await this.checkpoint()
    if (this.#writers) this.#seenCheckpoint = (await this.checkpoints.store.newest())?.size ?? 0
  }

  /** Drops what is older than this many days; 0 keeps everything. */
  async retire(days: number, signal: AbortSignal): Promise<void> {
    if (days === 0) return
    const { trim } = await import('./retention.ts')
    await this.number()
    await trim(
      {
        trail: this.store,
        checkpoints: this.checkpoints,
        audit: this,
        log: this.#log,
        signal,
        ...omitUndefined({ writers: this.#writers }),
      },
      new Date(Date.now() - days * 86_400_000).toISOString(),
    )
  }

  #armAnchor(): void {
    if (this.#timer || this.#closed) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.anchor()
        .then(() => (this.#uncovered >= CHECKPOINT_ENTRIES ? this.checkpoint() : undefined))
        .catch((error: unknown) =>
          this.#log.error('the anchor or a checkpoint of the audit chain could not be written', {
            error: messageOf(error),
          }),
        )
    }, ANCHOR_MS)
    this.#timer.unref()
  }

  async #moveAnchor(): Promise<void> {
    await this.number()
    const state = await this.#anchor.read()
    // Without a sound anchor the end of the chain proves nothing, so it must not become the new anchor. Only a chain
    // that is empty, or never had an anchor, gets a first one.
    if (
      state.kind === 'forged' ||
      state.kind === 'keyless' ||
      (state.kind === 'missing' && (await this.store.count({ agentId: undefined, eventType: undefined })) > 0)
    ) {
      this.#log.error(
        `the anchor of the audit chain is left alone, and the end of the chain is unproven: ${UNSOUND[state.kind]}${accept()}`,
        { state: state.kind },
      )
      return
    }
    const start = state.kind === 'known' ? await this.#goOn(state.tip) : await this.#beginning()
    if (!start) {
      this.#log.error(`the audit chain does not reach its anchor: entries were removed or changed${accept()}`, {
        anchored: state.kind === 'known' ? state.tip.count : 0,
      })
      return
    }
    const walk = new ChainWalk().from(start.count, start.hash)
    for (;;) {
      const page = await this.store.after(walk.last.id, PAGE)
      for (const link of page) {
        if (!walk.add(link)) {
          this.#log.error('the audit chain is broken', { id: link.id })
          return
        }
      }
      if (page.length < PAGE) break
      await pause()
    }
    if (state.kind === 'known' && walk.last.id === state.tip.count) return
    await this.#anchor.write({ count: walk.last.id, hash: walk.last.hash })
  }

  /** `undefined` when the anchored entry is not there. */
  async #goOn(tip: Tip): Promise<Tip | undefined> {
    if (tip.count === 0 || (await this.store.find(tip.count))?.hash === tip.hash) return tip
    // Another daemon may have dropped it meanwhile, and signed that.
    const [origin, verifier] = await Promise.all([this.checkpoints.store.origin(), this.checkpoints.signer.verifier()])
    if (!origin || origin.entry_id < tip.count || !verifier?.holds(originText(origin), origin)) return undefined
    return { count: origin.entry_id, hash: origin.hash }
  }
  /** Where a first anchor begins. A daemon that joins others trusts what they have signed last. */
  async #beginning(): Promise<Tip> {
    const [origin, checkpoint, verifier] = await Promise.all([
      this.checkpoints.store.origin(),
      this.#writers && this.checkpoints.store.newest(),
      this.#writers && this.checkpoints.signer.verifier(),
    ])
    const entry =
      checkpoint && verifier?.holds(checkpointText(checkpoint), checkpoint)
        ? await this.store.find(checkpoint.size)
        : undefined
    return entry
      ? { count: entry.id, hash: entry.hash }
      : { count: origin?.entry_id ?? 0, hash: origin?.hash ?? ORIGIN }
  }
}

/** For who has restored an older copy, or lost the anchor. */
export const accept = (): string => `. If that is known and meant: ${commandLine('audit reset-anchor')}`

const UNSOUND = {
  missing: 'audit.anchor is missing; put it back',
  keyless: 'its key is missing in the vault',
  forged: 'audit.anchor was not written by this installation, or not whole',
} as const

const toEntry = (link: Link): AuditEntry => ({
  id: link.id,
  timestamp: link.timestamp,
  event: link.event_type,
  agentId: link.agent_id,
  details: link.details,
  actor: link.actor ?? '',
})

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** Nearly always one of our ids, which needs no cleaning. */
function agentOf({ agentId = '' }: AuditRecord): string {
  return agentId === '' || UUID.test(agentId) ? agentId : clean(agentId, 256)
}
