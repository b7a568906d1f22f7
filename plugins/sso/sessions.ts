import { hash, randomBytes, randomUUID } from 'node:crypto'
import type { RowProofs, RowsInMemory, TellChange } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { AcceptedCredentials, Holder, PluginCredentials, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { refusalOf } from './config.ts'
import type { Identity, Provider } from './config.ts'
import type { EndedSignIns } from './ended.ts'
import { personIdOf } from './person-id.ts'
import type { Session } from './schema.ts'
import type { SessionStore } from './store.ts'

export interface SessionsDeps {
  readonly store: SessionStore
  readonly audit: Audit
  readonly now: () => number
  /** Of rows that a daemon wrote. */
  readonly proofs: Pick<RowProofs, 'of' | 'holds'>
  /** What this home knows to be ended. */
  readonly ended: Pick<EndedSignIns, 'all' | 'put' | 'putAll'>
  /** Whether other daemons are on the database. */
  readonly isShared: boolean
  /** Hears of people that another daemon signed in or out. */
  readonly follow: (rows: RowsInMemory) => TellChange
  /** The sign-ins could not be read anew. */
  readonly failed: (error: unknown) => void
  readonly providers: readonly Provider[]
  readonly limits: { readonly ttlMs: number; readonly maxSessions: number; readonly perUser: number }
}
interface CachedSession {
  readonly session: Session
  readonly holder: Holder
  readonly until: number
}

const digestOf = (token: string): string => hash('sha256', token, 'hex')

/**
 * The sign-ins: rows, and a copy in memory for the check of every request. A token is 256 random bits, so a plain
 * digest reveals nothing about it, and a lookup by digest takes the same time whether or not it exists. A row counts
 * with a proof only: who can write to the database only signs nobody in.
 */
export class Sessions {
  readonly #deps: SessionsDeps
  #byDigest = new Map<string, CachedSession>()
  /** Counts the changes, those of other daemons too. */
  #changes = 0
  #accepted: AcceptedCredentials | undefined
  readonly #tell: TellChange
  constructor(deps: SessionsDeps) {
    this.#deps = deps
    const readAnew = (): void => {
      this.#changes++
      if (this.#accepted) this.read().catch(deps.failed)
    }
    this.#tell = deps.follow(readAnew)
  }

  /** From here on tokens open something. */
  async open(credentials: PluginCredentials): Promise<void> {
    if (this.#deps.isShared) await this.#catchUp()
    await this.read()
    this.#accepted = credentials.accept({ name: 'sso', find: (digest) => this.#find(digest)?.holder })
  }

  /** Loads the stored sign-ins that the current rules still allow. Another process may have changed them. */
  async read(): Promise<void> {
    let rows: Session[]
    let proven: boolean[]
    let changes: number
    // What is signed in or out while the rows are read must not be undone by them.
    do {
      changes = this.#changes
      rows = await this.#deps.store.all(this.#time())
      proven = await Promise.all(rows.map((row) => this.#deps.proofs.holds(provenFields(row), row.proof)))
    } while (changes !== this.#changes)
    const before = this.#byDigest
    const ended = await this.#deps.ended.all()
    const permitted = rows.filter((session, at) => {
      if (!proven[at] || ended.has(session.id)) return false
      const provider = this.#deps.providers.find(({ id }) => id === session.provider)
      return (
        provider !== undefined &&
        provider.issuer === session.issuer &&
        refusalOf({ email: session.email ?? undefined, email_verified: session.email_verified }, provider) === undefined
      )
    })
    this.#byDigest = new Map(permitted.map((session) => [session.digest, toCached(session)]))
    if ([...before.keys()].some((digest) => !this.#byDigest.has(digest))) this.#accepted?.revoked()
    const known = new Set(rows.map(({ id }) => id))
    // Ended by another daemon.
    for (const { session } of before.values()) if (!known.has(session.id)) await this.#noteEnded(session)
  }
  async #noteEnded({ id, expires_at: at }: Session): Promise<void> {
    if (at > this.#time()) await this.#deps.ended.put(id, { expires_at: at })
  }

  /** Remembers what other daemons ended while this home could not hear of it. */
  async #catchUp(): Promise<void> {
    const { ended, proofs, store } = this.#deps
    const known = await ended.all()
    const rows = (await store.ended(this.#time())).filter(({ id }) => !known.has(id))
    const proven = await Promise.all(rows.map((row) => proofs.holds(endedFields(row), row.proof)))
    const added = rows.filter((_, at) => proven[at])
    if (added.length > 0) await ended.putAll(added.map(({ id, expires_at }) => [id, { expires_at }]))
  }
  async #endedStatements(session: Session): Promise<readonly Statement[]> {
    if (!this.#deps.isShared) return []
    const { proofs, store } = this.#deps
    return store.noteEnded(session.id, session.expires_at, await proofs.of(endedFields(session)), this.#time())
  }

  list(): readonly Session[] {
    return [...this.#byDigest.values()].map(({ session }) => session)
  }
  /** By the id of its holder. */
  byId(id: string): Session | undefined {
    return this.list().find((session) => session.id === id)
  }
  byToken(token: string): Session | undefined {
    return this.#find(digestOf(token))?.session
  }

  /** Signs a person in: the token is returned and not stored. Throws `service_unavailable` when there are too many. */
  async create(
    identity: Identity,
    clientAddress: string,
  ): Promise<{ readonly token: string; readonly session: Session }> {
    const { store, audit, limits, now } = this.#deps
    const token = `svc_sso_${randomBytes(32).toString('base64url')}`
    const { email, name, picture, ...rest } = identity
    const made: Omit<Session, 'proof'> = {
      ...rest,
      id: randomUUID(),
      digest: digestOf(token),
      email: email ?? null,
      name: name ?? null,
      picture: picture ?? null,
      created_at: this.#time(),
      expires_at: new Date(now() + limits.ttlMs).toISOString(),
    }
    const session: Session = { ...made, proof: await this.#deps.proofs.of(provenFields(made)) }
    const theirs = this.list().filter(({ issuer, sub }) => issuer === session.issuer && sub === session.sub)
    const oldest = theirs.slice(0, Math.max(0, theirs.length + 1 - limits.perUser))
    const written = (): void => {
      this.#changes++
      for (const { digest } of oldest) this.#byDigest.delete(digest)
      this.#byDigest.set(session.digest, toCached(session))
      if (oldest.length > 0) this.#accepted?.revoked()
    }
    if (this.#byDigest.size - oldest.length >= limits.maxSessions)
      throw new Refusal(
        'service_unavailable',
        `Too many people are signed in (external_auth.max_sessions is ${limits.maxSessions})`,
      )
    const noted = await Promise.all(oldest.map((one) => this.#endedStatements(one)))
    await store.commit(
      store.sweep(this.#time()),
      ...noted.flat(),
      ...oldest.map(({ id }) => store.remove(id)),
      { ...store.insert(session, limits.maxSessions), written },
      audit.entry({ event: 'auth_attempt', details: `signed in: ${describe(session)} from ${clientAddress}` }),
      ...this.#tell(session.id),
    )
    for (const one of oldest) await this.#noteEnded(one)
    return { token, session }
  }

  /** Ends a sign-in: its token opens nothing when this settles, and what was opened with it is closed. */
  async remove(session: Session, by: string): Promise<void> {
    const { store, audit } = this.#deps
    const written = (): void => {
      this.#changes++
      this.#byDigest.delete(session.digest)
      this.#accepted?.revoked()
    }
    const noted = await this.#endedStatements(session)
    await store.commit(
      { ...store.remove(session.id), written },
      ...noted,
      audit.entry({ event: 'auth_revoked', details: `signed out: ${describe(session)}, by ${by}` }),
      ...this.#tell(session.id),
    )
    await this.#noteEnded(session)
  }

  /** Drops expired sign-ins; otherwise the connections opened with them would stay as long as they are idle. */
  async sweep(): Promise<void> {
    const now = this.#deps.now()
    const expired = [...this.#byDigest.values()].filter(({ until }) => until <= now)
    if (expired.length === 0) return
    for (const { session } of expired) this.#byDigest.delete(session.digest)
    this.#accepted?.revoked()
    await this.#deps.store.commit(this.#deps.store.sweep(this.#time()))
  }

  #find(digest: string): CachedSession | undefined {
    const found = this.#byDigest.get(digest)
    return found !== undefined && found.until > this.#deps.now() ? found : undefined
  }
  #time(): string {
    return new Date(this.#deps.now()).toISOString()
  }
}

const endedFields = ({ id, expires_at: at }: Pick<Session, 'id' | 'expires_at'>): readonly unknown[] => [
  'ended',
  id,
  at,
]
const provenFields = (session: Omit<Session, 'proof'>): readonly unknown[] => [
  session.id,
  session.digest,
  session.provider,
  session.issuer,
  session.sub,
  session.email,
  session.email_verified,
  session.name,
  session.picture,
  session.created_at,
  session.expires_at,
]
function toCached(session: Session): CachedSession {
  return {
    session,
    holder: {
      kind: 'user',
      title: 'A signed-in user',
      label: 'sign-in',
      name: nameOf(session),
      id: session.id,
      subject: personIdOf(session),
    },
    until: Date.parse(session.expires_at),
  }
}
const nameOf = ({ email, name, sub }: Session): string => email ?? name ?? sub
function describe(session: Session): string {
  return `${nameOf(session)} (${session.sub} of provider "${session.provider}", sign-in ${session.id})`
}
