import type { PluginDatabase, Statement } from './database.ts'

/** An answer as it was sent. */
export interface StoredAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
  /** Seconds of its `Retry-After`. */
  readonly retryAfter?: number | undefined
}
/**
 * What is known of one Idempotency-Key. `recall` says that the answer is asked of the route again, by the id of the
 * effect.
 */
export interface Reservation {
  readonly fingerprint: string
  readonly effectId: string
  /** Who works on it, or did when it was left. */
  readonly owner: string
  readonly answer: StoredAnswer | 'recall' | undefined
}
export interface Place {
  readonly scope: string
  readonly key: string
}
/** A place that this owner holds. */
export interface HeldPlace extends Place {
  readonly owner: string
}

/** Reservations of Idempotency-Keys. Every change is durable before it settles. */
export interface Reservations {
  /** The one that holds now; `made` when it is the one that was wanted. */
  reserve(
    place: Place,
    wanted: Pick<Reservation, 'fingerprint' | 'effectId' | 'owner'>,
  ): Promise<Reservation & { readonly made: boolean }>
  /**
   * Makes an open one that another owner left one's own; `false` when somebody else was faster. `conditions` go first in
   * the batch, which fails with them.
   */
  takeOver(place: Place, from: string, to: string, conditions?: readonly Statement[]): Promise<boolean>
  /** `false` when somebody else has taken it over. */
  settle(place: HeldPlace, answer: StoredAnswer | 'recall'): Promise<boolean>
  /** Nothing was done: the key is free again, unless somebody else has taken it over. */
  release(place: HeldPlace): Promise<void>
  /** Removes those made before a time (ISO 8601 UTC); says how many. */
  forget(before: string): Promise<number>
}

interface Row {
  readonly fingerprint: string
  readonly effect_id: string
  readonly owner: string
  readonly state: 'open' | 'done' | 'recall'
  readonly status: number | null
  readonly type: string | null
  readonly body: string | null
  readonly retry_after: number | null
}

export function openReservations(db: PluginDatabase, now: () => string): Reservations {
  return {
    async reserve({ scope, key }, { fingerprint, effectId, owner }) {
      const { changes } =
        await db.run`INSERT INTO core_idempotency (scope, key, fingerprint, effect_id, owner, state, created_at)
        VALUES (${scope}, ${key}, ${fingerprint}, ${effectId}, ${owner}, 'open', ${now()})
        ON CONFLICT (scope, key) DO NOTHING`
      if (changes === 1) return { fingerprint, effectId, owner, answer: undefined, made: true }
      const row = await db.one<Row>`SELECT fingerprint, effect_id, owner, state, status, type, body, retry_after
          FROM core_idempotency WHERE scope = ${scope} AND key = ${key}`
      // Released between the two statements: the caller tries again.
      if (!row) return { fingerprint, effectId, owner: '', answer: undefined, made: false }
      return {
        fingerprint: row.fingerprint,
        effectId: row.effect_id,
        owner: row.owner,
        answer: toAnswer(row),
        made: false,
      }
    },
    async takeOver({ scope, key }, from, to, conditions = []) {
      const outcomes = await db.batch([
        ...conditions,
        db.sql`UPDATE core_idempotency SET owner = ${to}
          WHERE scope = ${scope} AND key = ${key} AND owner = ${from} AND state = 'open'`,
      ])
      return outcomes.at(-1)?.changes === 1
    },
    async settle({ scope, key, owner }, answer) {
      const { changes } =
        answer === 'recall'
          ? await db.run`UPDATE core_idempotency SET state = 'recall'
              WHERE scope = ${scope} AND key = ${key} AND owner = ${owner}`
          : await db.run`UPDATE core_idempotency SET state = 'done', status = ${answer.status}, type = ${answer.type},
              body = ${answer.body}, retry_after = ${answer.retryAfter ?? null}
              WHERE scope = ${scope} AND key = ${key} AND owner = ${owner}`
      return changes === 1
    },
    async release({ scope, key, owner }) {
      await db.run`DELETE FROM core_idempotency
        WHERE scope = ${scope} AND key = ${key} AND owner = ${owner} AND state = 'open'`
    },
    async forget(before) {
      return (await db.run`DELETE FROM core_idempotency WHERE created_at < ${before}`).changes
    },
  }
}

function toAnswer({ state, status, type, body, retry_after: retryAfter }: Row): Reservation['answer'] {
  if (state === 'recall') return 'recall'
  return state === 'done'
    ? {
        status: Number(status ?? 500),
        type: type ?? 'application/json',
        body: body ?? '',
        ...(retryAfter === null ? {} : { retryAfter: Number(retryAfter) }),
      }
    : undefined
}
