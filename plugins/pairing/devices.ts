import type { RowProofs, RowsInMemory, TellChange } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { AcceptedCredentials, Holder, PluginCredentials, RequestFacts, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { RemovedDevices } from './removed.ts'
import type { RemovedElsewhere } from './removed-elsewhere/store.ts'
import type { Device, DeviceRow } from './schema.ts'
import type { DeviceStore } from './paired/store.ts'

/** The name of the source of its credentials. */
const SOURCE = 'pairing'
export type Caller = Pick<RequestFacts, 'principal' | 'clientAddress'>
interface CachedDevice {
  readonly row: DeviceRow
  readonly holder: Holder
  lastSeen: string
  written: string
}

export interface DevicesDeps {
  readonly store: DeviceStore
  readonly audit: Audit
  readonly now: () => number
  /** Of rows that a daemon wrote. */
  readonly proofs: Pick<RowProofs, 'of' | 'holds'>
  /** What this home knows to be removed. */
  readonly removed: Pick<RemovedDevices, 'all' | 'put'>
  /** Where daemons share the database. */
  readonly elsewhere: RemovedElsewhere | undefined
  /** Of a device whose row is refused. */
  readonly warn: (id: string, name: string) => Promise<void>
  /** Hears of devices that another daemon paired or removed. */
  readonly follow: (rows: RowsInMemory) => TellChange
  /** They could not be read anew. */
  readonly failed: (error: unknown) => void
}

/**
 * The paired devices: rows, and a copy in memory for the check of every request. A row counts with a proof only: the
 * digest of a key is a plain SHA-256, which whoever writes to the database could add for a key of theirs.
 */
export class Devices {
  readonly #store: DeviceStore
  readonly #audit: Audit
  readonly #now: () => number
  readonly #tell: TellChange
  readonly #proofs: DevicesDeps['proofs']
  readonly #removed: DevicesDeps['removed']
  readonly #elsewhere: RemovedElsewhere | undefined
  readonly #warn: DevicesDeps['warn']
  #byDigest = new Map<string, CachedDevice>()
  #accepted: AcceptedCredentials | undefined
  /** Without a valid proof, by id. */
  #refused: ReadonlyMap<string, DeviceRow> = new Map()
  /** Ids of those that are being removed. */
  readonly #leaving = new Set<string>()
  #changes = 0
  constructor({ store, audit, now, proofs, removed, elsewhere, warn, follow, failed }: DevicesDeps) {
    this.#proofs = proofs
    this.#removed = removed
    this.#elsewhere = elsewhere
    this.#warn = warn
    this.#store = store
    this.#audit = audit
    this.#now = now
    const readAnew = (): void => {
      // What is being read may be from before the change.
      this.#changes++
      if (this.#accepted) this.read().catch(failed)
    }
    this.#tell = follow(readAnew)
  }

  /** From here on devices are let in. */
  async open(credentials: PluginCredentials): Promise<void> {
    await this.#elsewhere?.catchUp()
    await this.read()
    this.#accepted = credentials.accept({ name: SOURCE, find: (digest) => this.#find(digest) })
  }
  #find(digest: string): Holder | undefined {
    const known = this.#byDigest.get(digest)
    if (known) known.lastSeen = new Date(this.#now()).toISOString()
    return known?.holder
  }

  /** Reloads the rows: another process may have paired or removed a device. */
  async read(): Promise<void> {
    let changes: number
    let all: readonly DeviceRow[]
    let held: readonly boolean[]
    // What was read before a change must not undo it here.
    do {
      changes = this.#changes
      all = await this.#store.devices()
      held = await Promise.all(all.map((row) => this.#counts(row)))
    } while (changes !== this.#changes)
    const rows = all.filter((_, at) => held[at])
    const before = this.#byDigest
    this.#byDigest = new Map(rows.map((row) => [row.digest, before.get(row.digest) ?? toCached(row)]))
    if ([...before.keys()].some((digest) => !this.#byDigest.has(digest))) this.#accepted?.revoked()
    await this.#refuse(all.filter((_, at) => !held[at]))
    const known = new Set(all.map(({ id }) => id))
    for (const { row } of before.values()) if (!known.has(row.id)) await this.#noteRemoved(row.id)
  }
  /** Whether a daemon wrote the row, and none has removed the device since, as far as this home knows. */
  async #counts(row: DeviceRow): Promise<boolean> {
    if ((await this.#removed.all()).has(row.id)) return false
    return await this.#proofs.holds(provenFields(row), row.proof)
  }
  async #noteRemoved(id: string): Promise<void> {
    await this.#removed.put(id, { removed_at: new Date(this.#now()).toISOString() })
  }

  async #refuse(rows: readonly DeviceRow[]): Promise<void> {
    const known = this.#refused
    this.#refused = new Map(rows.map((row) => [row.id, row]))
    for (const { id, display_name: name } of rows) if (!known.has(id)) await this.#warn(id, name)
  }
  /** What makes its row count. */
  proofOf(row: Omit<DeviceRow, 'proof'>): Promise<string> {
    return this.#proofs.of(provenFields(row))
  }

  list(): readonly Device[] {
    return [...this.#byDigest.values()].map(({ row, lastSeen }) => ({
      device_id: row.id,
      display_name: row.display_name,
      platform: row.platform,
      paired_at: row.paired_at,
      last_seen: lastSeen,
    }))
  }
  get size(): number {
    return this.#byDigest.size
  }

  /** The copy follows when the row is on disk. */
  insert(row: DeviceRow, statement: Statement): readonly Statement[] {
    const written = (): void => this.#follow(() => this.#byDigest.set(row.digest, toCached(row)))
    return [{ ...statement, written }, ...this.#tell(row.id)]
  }

  /** What turns remember of a device that is paired. */
  credentialOf(id: string): string | undefined {
    const row = this.#rowOf(id)
    return row && `${row.digest} ${SOURCE}`
  }
  #rowOf(id: string): DeviceRow | undefined {
    return [...this.#byDigest.values()].find((device) => device.row.id === id)?.row ?? this.#refused.get(id)
  }
  /**
   * `also`: in the same batch; `note`: what the trail says of it. Throws `device_not_found`. When it settles the key opens
   * nothing, and what was opened with it is closed.
   */
  async remove(id: string, by: Caller, note = '', also: readonly Statement[] = []): Promise<void> {
    const row = this.#rowOf(id)
    if (!row || this.#leaving.has(id)) throw new Refusal('device_not_found', `No device ${id}`)
    this.#leaving.add(id)
    try {
      const noted = await this.#elsewhere?.note(id, new Date(this.#now()).toISOString())
      await this.#store.commit(
        ...(noted ? [noted] : []),
        { ...this.#store.removeDevice(id), written: () => this.#follow(() => this.#byDigest.delete(row.digest)) },
        this.#audit.entry({
          event: 'pairing_changed',
          details: `device ${id} "${row.display_name}" removed by ${nameOf(by)}${note}`,
        }),
        ...this.#tell(id),
        ...also,
      )
    } finally {
      this.#leaving.delete(id)
    }
    this.#accepted?.revoked()
    await this.#noteRemoved(id)
  }
  /** What a device began that was removed before. */
  async stopEffects(id: string, by: Caller, note: string, statements: readonly Statement[]): Promise<void> {
    const details = `device ${id}, removed before, by ${nameOf(by)}${note}`
    await this.#store.commit(this.#audit.entry({ event: 'pairing_changed', details }), ...statements)
  }
  #follow(change: () => unknown): void {
    this.#changes++
    change()
  }

  /** Stores when devices were last seen: not at every request, and not when there was none. */
  async note(): Promise<void> {
    const unwritten = [...this.#byDigest.values()].filter(({ lastSeen, written }) => lastSeen > written)
    if (unwritten.length === 0) return
    await this.#store.commit(
      ...unwritten.map((device) => {
        const at = device.lastSeen
        return {
          ...this.#store.seen(device.row.id, at),
          written: () => {
            device.written = at
          },
        }
      }),
    )
  }
}

const provenFields = ({ id, digest, display_name: name, platform, paired_at: at }: Omit<DeviceRow, 'proof'>) => [
  id,
  digest,
  name,
  platform,
  at,
]
function toCached(row: DeviceRow): CachedDevice {
  return {
    row,
    holder: { kind: 'device', title: 'A paired device', name: row.display_name, id: row.id },
    lastSeen: row.last_seen,
    written: row.last_seen,
  }
}
/** Who it was, for the audit trail. */
export function nameOf({ principal, clientAddress }: Caller): string {
  return 'name' in principal
    ? `${principal.kind} "${principal.name}" at ${clientAddress}`
    : `${principal.kind} at ${clientAddress}`
}
