import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { Session } from './schema.ts'

const EndedRow = v.object({ id: v.string(), expires_at: v.string(), proof: v.string() })
type EndedRow = v.InferOutput<typeof EndedRow>

export class SessionStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async all(now: string): Promise<Session[]> {
    return v.parse(
      v.array(Session),
      await this.#db
        .all`SELECT id, digest, proof, provider, issuer, sub, email, email_verified, name, picture, created_at, expires_at
      FROM sso_session WHERE expires_at > ${now} ORDER BY created_at, id`,
    )
  }
  /** With `maxSessions` rows the id becomes NULL, which the column refuses: the batch fails as a whole. */
  insert(session: Session, maxSessions: number): Statement {
    const { id, digest, proof, provider, issuer, sub, email, name, picture, created_at: createdAt } = session
    return {
      ...this.#db.sql`INSERT INTO sso_session
        (id, digest, proof, provider, issuer, sub, email, email_verified, name, picture, created_at, expires_at)
      VALUES (CASE WHEN (SELECT COUNT(*) FROM sso_session) < ${maxSessions} THEN ${id} END,
        ${digest}, ${proof}, ${provider}, ${issuer}, ${sub}, ${email}, ${session.email_verified ? 1 : 0},
        ${name}, ${picture}, ${createdAt}, ${session.expires_at})`,
      exclusive: 'sso_session',
    }
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM sso_session WHERE id = ${id}`
  }
  sweep(now: string): Statement {
    return this.#db.sql`DELETE FROM sso_session WHERE expires_at <= ${now}`
  }
  /** For the batch that removes it: daemons that do not run now learn at their start that it was ended. */
  noteEnded(id: string, expiresAt: string, proof: string, now: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM sso_ended WHERE expires_at <= ${now}`,
      this.#db.sql`INSERT INTO sso_ended (id, expires_at, proof) VALUES (${id}, ${expiresAt}, ${proof})
        ON CONFLICT (id) DO NOTHING`,
    ]
  }
  async ended(now: string): Promise<readonly EndedRow[]> {
    const rows = await this.#db.all`SELECT id, expires_at, proof FROM sso_ended WHERE expires_at > ${now}`
    return v.parse(v.array(EndedRow), rows)
  }
  /** Whether this digest was not there before: then it is until `expiresAt`, with a value. */
  async insertOnce(digest: string, value: string, expiresAt: string, now: string): Promise<boolean> {
    const outcomes = await this.#db.batch([
      this.#db.sql`DELETE FROM sso_once WHERE expires_at <= ${now}`,
      this.#db.sql`INSERT INTO sso_once (digest, value, expires_at) VALUES (${digest}, ${value}, ${expiresAt})
        ON CONFLICT (digest) DO NOTHING`,
    ])
    return outcomes.at(-1)?.changes === 1
  }
  /** The value under a digest, for the one caller who removes it. */
  async takeOnce(digest: string, now: string): Promise<string | undefined> {
    const row = await this.#db.one<{ readonly value: string }>`SELECT value FROM sso_once
      WHERE digest = ${digest} AND expires_at > ${now}`
    const { changes } = await this.#db.run`DELETE FROM sso_once WHERE digest = ${digest}`
    return changes === 1 ? row?.value : undefined
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
