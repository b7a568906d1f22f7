import { randomUUID } from 'node:crypto'
import { CodeHasher, createLimiter, KeptRows, makeCode, toIso } from 'svc/internal'
import type { Clock, Limiter, RowsInMemory, TellChange } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Counter, Vault } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import type { Audit } from '../../audit/contract.ts'
import type { Account } from '../accounts/account.ts'
import type { Role } from './roles.ts'
import type { Code, Paired, PairingStore } from './store.ts'

export interface PairingDeps {
  readonly store: PairingStore
  readonly audit: Pick<Audit, 'entry'>
  readonly vault: Pick<Vault, 'read' | 'write'>
  readonly clock: Clock
  readonly guesses: Counter
  /** Hears of people that another daemon paired or removed. */
  readonly follow: (rows: RowsInMemory) => TellChange
  readonly settings: { readonly pairing_code_secs: number; readonly pairing_guesses_per_hour: number }
}
type Place = Pick<Account, 'channel' | 'id'>

const CODE_KEY = 'pairing-code-key'
const MAX_CODES = 20
/** Wrong codes of one person in an hour; of everybody together it is a setting. */
const GUESSES_PER_PERSON = 5
const HOUR_MS = 3_600_000
/** Without a command it needs the hyphen: an ordinary word of six letters is no guess. */
const TEXT =
  /^(?:(\/(?:pair|start)(?:@\w+)?)\s+([2-9A-HJ-NP-Z]{3}-?[2-9A-HJ-NP-Z]{3})|([2-9A-HJ-NP-Z]{3}-[2-9A-HJ-NP-Z]{3}))$/i

/** A pairing code in a message: `isExplicit` with a command before it, so it cannot be meant for the agent. */
export function readCode(text: string): { readonly code: string; readonly isExplicit: boolean } | undefined {
  const [, command, named, bare] = TEXT.exec(text.trim()) ?? []
  const code = named ?? bare
  return code === undefined ? undefined : { code, isExplicit: command !== undefined }
}

/** Admits people by a code that the operator gives them. Codes and people are rows. */
export class Pairing {
  readonly #deps: PairingDeps
  /** One guess at a time, so that concurrent ones are counted. */
  readonly #queue = new SerialQueue()
  readonly #personal: Limiter
  readonly #overall: Limiter
  readonly #people: KeptRows<ReadonlyMap<string, Paired>>
  readonly #tell: TellChange
  readonly #hasher: CodeHasher
  constructor(deps: PairingDeps) {
    this.#deps = deps
    this.#hasher = new CodeHasher(deps.vault, CODE_KEY)
    this.#people = new KeptRows(async () => {
      const rows = await deps.store.all()
      return new Map(rows.map((row) => [keyOf(row.channel, row.account, row.sender_id), row]))
    })
    this.#tell = deps.follow(() => this.#people.changed())
    const now = (): number => deps.clock.now()
    this.#personal = createLimiter({ tokens: GUESSES_PER_PERSON, windowMs: HOUR_MS, maxKeys: 10_000, now })
    const { pairing_guesses_per_hour: tokens } = deps.settings
    this.#overall = createLimiter({ tokens, windowMs: HOUR_MS, maxKeys: 1_000, now })
  }

  async find({ channel, id }: Place, senderId: string): Promise<Paired | undefined> {
    return (await this.#people.get()).get(keyOf(channel, id, senderId))
  }
  async list(channel: string): Promise<readonly Paired[]> {
    return [...(await this.#people.get()).values()].filter((each) => each.channel === channel)
  }
  /** How many people of an account are paired. */
  async count({ channel, id }: Place): Promise<number> {
    return (await this.list(channel)).filter(({ account }) => account === id).length
  }
  async codes(channel: string): Promise<readonly Code[]> {
    return this.#deps.store.codes(channel, this.#now())
  }

  /** A new code, which is stored nowhere. Throws `conflict` when too many wait. */
  async request(
    { channel, id: account }: Place,
    role: Role,
  ): Promise<{ readonly code: string; readonly expiresAt: string }> {
    const { store, audit, clock, settings } = this.#deps
    if ((await this.codes(channel)).length >= MAX_CODES)
      throw new Refusal('conflict', `${MAX_CODES} pairing codes wait already: use one, or wait until they expire`)
    const code = makeCode()
    const expiresAt = toIso(clock.now() + settings.pairing_code_secs * 1000)
    const digest = await this.#hasher.digest(code)
    await store.commit([
      store.removeExpired(this.#now()),
      store.insertCode({ digest, channel, account, role, expires_at: expiresAt }),
      audit.entry({
        event: 'pairing_changed',
        details: `a pairing code for a person (${role}) on ${channel} account ${account}, valid until ${expiresAt}`,
      }),
    ])
    return { code, expiresAt }
  }

  /** `limited`: too many wrong codes, so this one was not even compared. */
  async redeem(place: Place, sender: InboundMessage['sender'], code: string): Promise<Paired | 'wrong' | 'limited'> {
    const outcome = await this.#queue.run(() => this.#redeem(place, sender, code))
    const label = typeof outcome === 'string' ? outcome : 'paired'
    this.#deps.guesses.add(1, { channel: place.channel, outcome: label })
    return outcome
  }
  async #redeem({ channel, id: account }: Place, sender: InboundMessage['sender'], code: string) {
    const { store, audit } = this.#deps
    const place = `${channel}\u0000${account}`
    const person = keyOf(channel, account, sender.id)
    if (!this.#personal.allows(person, 1) || !this.#overall.allows(place, 1)) return 'limited'
    const found = await store.findCode(await this.#hasher.digest(code), channel, account, this.#now())
    if (!found) {
      this.#personal.take(person, 1)
      this.#overall.take(place, 1)
      await this.#noteLock({ channel, id: account }, sender)
      return 'wrong'
    }
    const paired: Paired = {
      id: randomUUID(),
      channel,
      account,
      sender_id: sender.id,
      name: sender.name,
      role: found.role,
      paired_at: this.#now(),
    }
    await store.commit([
      store.insert(paired),
      store.removeCode(found.digest),
      audit.entry({
        event: 'pairing_changed',
        details: `${describe(paired)} paired as ${paired.role} on ${channel} account ${account}`,
      }),
      ...this.#tell(''),
    ])
    this.#people.changed()
    return paired
  }

  /** The code that ended the allowance of a person or of an account is on record: somebody may be guessing. */
  async #noteLock({ channel, id: account }: Place, { id, name }: InboundMessage['sender']): Promise<void> {
    const isPersonal = !this.#personal.allows(keyOf(channel, account, id), 1)
    if (!isPersonal && this.#overall.allows(`${channel}\u0000${account}`, 1)) return
    const who = isPersonal ? describe({ name, sender_id: id }) : 'everybody'
    await this.#deps.store.commit([
      this.#deps.audit.entry({
        event: 'pairing_changed',
        details: `too many wrong pairing codes on ${channel} account ${account}: locked for ${who} for up to an hour`,
      }),
    ])
  }

  /** Throws `pairing_not_found`. */
  async revoke(channel: string, id: string): Promise<void> {
    const { store, audit } = this.#deps
    const paired = [...(await this.#people.get()).values()].find((each) => each.id === id && each.channel === channel)
    if (!paired) throw new Refusal('pairing_not_found', `No pairing ${id} of ${channel}`)
    await store.commit([
      store.remove(id),
      audit.entry({
        event: 'pairing_changed',
        details: `${describe(paired)} is not paired any more on ${channel} account ${paired.account}`,
      }),
      ...this.#tell(''),
    ])
    this.#people.changed()
  }

  #now(): string {
    return toIso(this.#deps.clock.now())
  }
}

function keyOf(channel: string, account: string, senderId: string): string {
  return `${channel}\u0000${account}\u0000${senderId}`
}
function describe({ name, sender_id: id }: Pick<Paired, 'name' | 'sender_id'>): string {
  return `${JSON.stringify(name)} (${id})`
}
