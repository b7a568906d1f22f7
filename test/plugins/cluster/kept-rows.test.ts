import { beforeEach, describe, expect, it } from 'vitest'
import { followChanges, KeptRows } from '../../../core/internal.ts'
import type { RowsInMemory } from '../../../core/internal.ts'
import type { Database, Migration } from '../../../core/storage/database.ts'
import { openDatabase } from '../../../core/storage/open.ts'
import type { Audit } from '../../../plugins/audit/contract.ts'
import type { ApprovalInput } from '../../../plugins/approvals/contract.ts'
import { hear } from '../../../plugins/approvals/decisions.ts'
import { migrations as approvalMigrations } from '../../../plugins/approvals/migrations.ts'
import { ApprovalProofs } from '../../../plugins/approvals/proof.ts'
import { ApprovalService } from '../../../plugins/approvals/service.ts'
import { ApprovalStore } from '../../../plugins/approvals/store.ts'
import { Conversations } from '../../../plugins/channels/routing/conversations.ts'
import { migrations as channelMigrations } from '../../../plugins/channels/migrations.ts'
import { RoutingStore } from '../../../plugins/channels/routing/store.ts'
import { ThreadOwners } from '../../../plugins/channels/routing/thread-owners.ts'
import { migrations as sessionMigrations } from '../../../plugins/sessions/migrations.ts'
import { SummaryStore } from '../../../plugins/sessions/summary/store.ts'
import { migrations as signInMigrations } from '../../../plugins/sso/migrations.ts'
import { Sessions } from '../../../plugins/sso/sessions.ts'
import { SessionStore } from '../../../plugins/sso/store.ts'
import { broadcastKey, closing, emptyPostgres, recorder } from '../../core/storage/engines.ts'
import { eventually } from '../../support/eventually.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const AT = '2026-11-20T12:00:00.000Z'
const conversation = { channel: 'telegram', account: 'default', chat: '7', thread: 't' }

/** What keeps rows in memory: two of them, on two connections to one database, as two daemons have them. */
interface Kept<T> {
  readonly topic: string
  readonly migrations: readonly [plugin: string, list: readonly Migration[]]
  readonly make: (database: Database, follow: (rows: RowsInMemory) => ReturnType<typeof followChanges>) => T
  readonly read: (kept: T) => unknown
  readonly change: (kept: T) => Promise<unknown>
  /** The same without a word to anybody. */
  readonly sql: string
  /** What is read at first, after the change, and after that of `sql`. */
  readonly states: readonly [unknown, unknown, unknown]
}
const row = <T>(kept: Kept<T>): Kept<unknown> => kept as Kept<unknown>

const kept: readonly Kept<unknown>[] = [
  row({
    topic: 'channels.conversations',
    migrations: ['channels', channelMigrations],
    make: ({ sql }, follow) =>
      new Conversations({ store: new RoutingStore(sql, recorder().log), now: () => AT, follow }),
    read: (conversations: Conversations) => conversations.chosen(conversation),
    change: (conversations) => conversations.choose(conversation, 'ada', []),
    sql: "UPDATE channels_chosen_agent SET agent_id = 'bo'",
    states: [undefined, 'ada', 'bo'],
  }),
  row({
    topic: 'channels.threads',
    migrations: ['channels', channelMigrations],
    make: ({ sql }, follow) =>
      new ThreadOwners({ store: new RoutingStore(sql, recorder().log), now: () => Date.parse(AT), follow }),
    read: (owners: ThreadOwners) => owners.find(conversation),
    change: (owners) => owners.claim(conversation, 'ada', 60),
    sql: "UPDATE channels_thread_owner SET agent_id = 'bo'",
    states: [undefined, 'ada', 'bo'],
  }),
  row({
    topic: 'sessions.summary-changed',
    migrations: ['sessions', sessionMigrations],
    make({ sql }, follow) {
      const tell = follow({ changed: (id) => summaries.forget(id), missed: () => summaries.forgetAll() })
      const summaries = new SummaryStore(sql, recorder().log, tell)
      return summaries
    },
    read: async (summaries: SummaryStore) => (await summaries.current('s'))?.text,
    change: (summaries) =>
      summaries.add(
        {
          id: 'one',
          sessionId: 's',
          text: 'short',
          labels: [],
          firstMessageId: 'm',
          lastMessageId: 'm',
          messageCount: 1,
          createdAt: AT,
        },
        [],
      ),
    sql: "UPDATE sessions_summary SET text = 'shorter'",
    states: [undefined, 'short', 'shorter'],
  }),
  row({
    topic: 'sso.sessions',
    migrations: ['sso', signInMigrations],
    async make(database, follow) {
      const sessions = new Sessions({
        store: new SessionStore(database.sql),
        audit: { entry: () => database.sql.sql`SELECT 1` } as unknown as Audit,
        now: () => Date.parse(AT),
        proofs,
        ended: { all: async () => new Map(), put: async () => {}, putAll: async () => {} },
        isShared: false,
        follow,
        failed,
        providers: [provider],
        limits: { ttlMs: 60_000, maxSessions: 10, perUser: 3 },
      })
      await sessions.open({ accept: () => ({ revoked() {} }), holds: () => true } as never)
      return sessions
    },
    read: async (sessions: Promise<Sessions>) => (await sessions).list().map(({ name }) => name),
    change: async (sessions) =>
      (await sessions).create(
        { provider: 'oidc', issuer: provider.issuer, sub: '1', email_verified: true, name: 'Ada' } as never,
        '127.0.0.1',
      ),
    sql: 'DELETE FROM sso_session',
    states: [[], ['Ada'], []],
  }),
]
const proofs = { of: async () => 'proven', holds: async (_: unknown, proof: string | null) => proof === 'proven' }
const approvalProofs = () => Promise.resolve(new ApprovalProofs(proofs, recorder().log))
const question = {
  tool: 'shell_exec',
  action: 'ls',
  description: '',
  summary: 'ls',
  actionHash: 'h',
  risk: 'high',
  intent: '',
} as never as Pick<ApprovalInput, 'tool' | 'summary' | 'risk'> as ApprovalInput
const failed = (error: unknown): never => {
  throw error
}
/** Ends the connections that listen. */
const loseMessages = (database: Database) =>
  database.sql.all`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT pg_notify(m.channel%')`
const provider = {
  id: 'oidc',
  displayName: 'OIDC',
  issuer: 'https://login.example',
  clientId: 'svc',
  clientSecret: undefined,
  redirectUrl: 'http://127.0.0.1/callback',
  scopes: [],
  allowedDomains: ['*'],
  allowedEmails: [],
  requireEmailVerified: false,
  formPost: false,
  endpoints: undefined,
}

describe('rows in memory', () => {
  let one: Database
  let two: Database
  beforeEach(async () => {
    const url = await emptyPostgres()
    one = closing(await openDatabase({ url, log: recorder().log, broadcastKey }))
    two = closing(await openDatabase({ url, log: recorder().log, broadcastKey }))
  })

  it.each(kept)('are as another daemon changed them, also when what it told is lost: $topic', async (each) => {
    const { topic, migrations, make, read, change, sql, states } = each
    await one.migrate(...migrations)
    if (topic.startsWith('sessions'))
      await one.sql
        .run`INSERT INTO sessions_message (session_id, turn_seq, seq, id, turn_id, role, blocks, chars, created_at)
        VALUES ('s', 1, 1, 'm', 't', 'user', '[]', 0, ${AT})`
    const [own, other] = [one, two].map((database) =>
      make(database, (rows) => followChanges({ broadcast: database.broadcast, own: () => undefined }, topic, rows)),
    )
    for (const each of [own, other]) expect(await read(each)).toEqual(states[0])
    await change(own)
    for (const each of [own, other]) await eventually(async () => expect(await read(each)).toEqual(states[1]))
    await one.sql.batch([one.sql.sql(Object.assign([sql], { raw: [sql] }) as TemplateStringsArray)])
    expect(await read(other)).toEqual(states[1])
    await loseMessages(one)
    await eventually(async () => expect(await read(other)).toEqual(states[2]))
  })

  it('of approvals end a wait at another daemon, also when what it told is lost: approvals.decided', async () => {
    await one.migrate('approvals', approvalMigrations)
    const clock = new ManualClock()
    const [asking, answering] = [one, two].map((database) => {
      const store = new ApprovalStore(database.sql, recorder().log, approvalProofs, (id) =>
        database.broadcast.tell('approvals.decided', { id }),
      )
      const service = new ApprovalService({
        store,
        audit: { entry: () => database.sql.sql`SELECT 1` } as unknown as Audit,
        clock,
        requested: () => undefined,
        resumed: () => undefined,
        resolved: () => undefined,
        granted: () => undefined,
        revoked: async () => undefined,
        tellRevoked: () => [],
        failed,
        asks: () => false,
        isLasting: () => false,
        remember: () => undefined,
        holds: () => true,
        limits: {
          timeoutSecs: 60,
          agentTimeoutSecs: new Map(),
          pendingPerAgent: 5,
          payloadBytes: 1_000,
          keepDays: 1,
          sessionScope: false,
          twoPeople: [],
          grantsPerSession: 0,
        },
      })
      hear(database.broadcast, service, {
        own: () => undefined,
        failed,
        db: database.sql,
        log: recorder().log,
        proofs: approvalProofs,
        revoked: async () => ({ put: async () => undefined, catchUp: async () => undefined }),
      }).catch(failed)
      return service
    })
    const waiting = async (id: string) => {
      const agent = { agentId: 'a', agentName: 'a', turnId: 't', sessionId: 's', callId: id }
      const { id: asked } = (await asking?.request({ ...agent, id, ...question })) ?? { id: '' }
      return asking?.decision(asked, new AbortController().signal)
    }
    const [first, second] = [waiting('first'), waiting('second')]
    await eventually(async () => expect(await one.sql.all`SELECT id FROM approvals_request`).toHaveLength(2))
    await answering?.approve('first', 'operator')
    expect(await first).toMatchObject({ state: 'approved' })
    await one.sql.run`UPDATE approvals_request SET state = 'rejected', decided_at = ${AT}, decided_by = 'operator'
      WHERE id = 'second'`
    await loseMessages(one)
    expect(await second).toMatchObject({ state: 'rejected' })
    asking?.close()
    answering?.close()
  })
})

describe('a copy that is read when it is asked for', () => {
  it('is read once, again after a change, and once more for a change while it is read', async () => {
    const reads: PromiseWithResolvers<string>[] = []
    const rows = new KeptRows(() => {
      reads.push(Promise.withResolvers())
      return reads.at(-1)?.promise ?? Promise.reject(new Error('unreachable'))
    })
    expect(rows.last).toBeUndefined()
    const [first, second] = [rows.get(), rows.get()]
    rows.changed()
    const third = rows.get()
    reads[0]?.resolve('outdated')
    await eventually(() => expect(reads).toHaveLength(2))
    expect(rows.last).toBe('outdated')
    reads[1]?.resolve('now')
    expect(await Promise.all([first, second, third, rows.get()])).toEqual(['now', 'now', 'now', 'now'])
    expect(reads).toHaveLength(2)
  })

  it('rejects as its reading does, and the next call reads again', async () => {
    let fails = true
    const rows = new KeptRows(async () => {
      if (fails) throw new Error('the database is gone')
      return 1
    })
    await expect(rows.get()).rejects.toThrow('the database is gone')
    fails = false
    expect(await rows.get()).toBe(1)
  })
})
