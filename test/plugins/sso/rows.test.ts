import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { RowProofs } from '../../../core/auth/row-proof.ts'
import type { Audit } from '../../../plugins/audit/contract.ts'
import type { Identity } from '../../../plugins/sso/config.ts'
import { EndedSignIns } from '../../../plugins/sso/ended.ts'
import { migrations } from '../../../plugins/sso/migrations.ts'
import { Sessions } from '../../../plugins/sso/sessions.ts'
import { SignIn } from '../../../plugins/sso/sign-in.ts'
import { SessionStore } from '../../../plugins/sso/store.ts'
import { open } from '../../core/storage/engines.ts'

const NOW = Date.now()
const provider = { id: 'oidc', issuer: 'https://id.example.org', allowedDomains: ['*'], allowedEmails: [] } as never
const ada = {
  provider: 'oidc',
  issuer: 'https://id.example.org',
  sub: '1',
  email_verified: true,
  name: 'Ada',
} as Identity

async function start() {
  const { database } = await open('sqlite')
  await database.migrate('sso', migrations)
  const db = database.sql
  const store = new SessionStore(db)
  let key: Uint8Array | undefined
  const proofs = new RowProofs({
    derive: () => Promise.resolve(key),
    vault: { write: () => Promise.resolve(void (key = randomBytes(32))) },
  })
  /** On a home of its own. */
  const startOn = async (home: string): Promise<Sessions> => {
    const made = new Sessions({
      store,
      audit: { entry: () => db.sql`SELECT 1` } as unknown as Audit,
      now: () => NOW,
      proofs,
      ended: new EndedSignIns(home),
      isShared: true,
      follow: () => () => [],
      failed(error) {
        throw error
      },
      providers: [provider],
      limits: { ttlMs: 60_000, maxSessions: 10, perUser: 3 },
    })
    await made.open({ accept: () => ({ revoked() {} }), holds: () => true } as never)
    return made
  }
  const makeHome = async (): Promise<string> => {
    const home = await mkdtemp(join(tmpdir(), 'svc-sign-ins-'))
    onTestFinished(() => rm(home, { recursive: true, force: true }))
    return home
  }
  const home = await makeHome()
  return { db, store, sessions: await startOn(home), home, makeHome, startOn }
}

it('a row of a sign-in counts as the daemon wrote it only', async () => {
  const { db, sessions } = await start()
  const { token } = await sessions.create(ada, '127.0.0.1')
  await db.run`INSERT INTO sso_session SELECT 'forged', 'forged', provider, issuer, sub, email, email_verified, name,
    picture, created_at, expires_at, proof FROM sso_session`
  await sessions.read()
  expect(sessions.list().map(({ name }) => name)).toEqual(['Ada'])
  expect(sessions.byToken(token)?.name).toBe('Ada')
  await db.run`UPDATE sso_session SET expires_at = '2030-01-01T00:00:00.000Z' WHERE id <> 'forged'`
  await sessions.read()
  expect(sessions.list()).toEqual([])
})

it('a sign-in that was ended lets nobody in when its row comes back, whoever ended it', async () => {
  const { db, sessions } = await start()
  const [own, others] = [await sessions.create(ada, '127.0.0.1'), await sessions.create(ada, '127.0.0.1')]
  await db.run`CREATE TABLE kept AS SELECT * FROM sso_session`
  await sessions.remove(own.session, 'Ada')
  await db.run`DELETE FROM sso_session`
  await sessions.read()
  await db.run`INSERT INTO sso_session SELECT * FROM kept`
  await sessions.read()
  expect([sessions.byToken(own.token), sessions.byToken(others.token)]).toEqual([undefined, undefined])
})

it('a home that did not run when a sign-in was ended knows it from its next start on, and after further ones', async () => {
  const { db, sessions, makeHome, startOn } = await start()
  const [token, others] = [await sessions.create(ada, '127.0.0.1'), await sessions.create(ada, '127.0.0.1')]
  await db.run`CREATE TABLE kept AS SELECT * FROM sso_session`
  await sessions.remove(token.session, 'Ada')
  // Nobody but a daemon says what was ended.
  await db.run`INSERT INTO sso_ended SELECT ${others.session.id}, expires_at, proof FROM sso_ended`
  const away = await makeHome()
  await startOn(away)
  await db.run`DELETE FROM sso_ended`
  await db.run`DELETE FROM sso_session`
  await db.run`INSERT INTO sso_session SELECT * FROM kept`
  const again = await startOn(away)
  expect(again.list().map(({ id }) => id)).toEqual([others.session.id])
  expect((await startOn(await makeHome())).list()).toHaveLength(2)
})

it('what is handed to a page is taken with its own code only, and as the daemon wrote it', async () => {
  const { db, store } = await start()
  const signIn = new SignIn([], { fetch: fetch as never, timeoutMs: 1000, now: () => NOW, store, key: undefined })
  const address = 'https://svc.example.org/api/auth/callback'
  const bindingOf = (cookie: string): string => /=([^;]+)/.exec(cookie)?.[1] ?? ''
  const one = await signIn.handOver(ada, address)
  expect(await signIn.take(one.code, bindingOf(one.cookie))).toEqual(ada)
  expect(await signIn.take(one.code, bindingOf(one.cookie))).toBeUndefined()
  for (const value of [JSON.stringify(ada), undefined]) {
    const own = await signIn.handOver({ ...ada, name: 'Bo' } as Identity, address)
    const [row] = await db.all<{ digest: string }>`SELECT digest FROM sso_once`
    await signIn.handOver(ada, address)
    // A text of somebody's own, and that of another sign-in.
    await db.run`UPDATE sso_once SET value = coalesce(${value ?? null},
      (SELECT o.value FROM sso_once o WHERE o.digest <> ${row?.digest ?? ''})) WHERE digest = ${row?.digest ?? ''}`
    expect(await signIn.take(own.code, bindingOf(own.cookie))).toBeUndefined()
    await db.run`DELETE FROM sso_once`
  }
})

it('people are told apart by issuer and sub, whatever they call themselves', async () => {
  const { sessions } = await start()
  let find: ((digest: string) => { subject?: string; name: string } | undefined) | undefined
  await sessions.open({
    accept: (source: { find: typeof find }) => {
      find = source.find
      return { revoked() {} }
    },
  } as never)
  const holderOf = async (identity: Identity) => find?.((await sessions.create(identity, '127.0.0.1')).session.digest)
  const [one, again] = [await holderOf(ada), await holderOf({ ...ada, name: 'Countess' })]
  const other = await holderOf({ ...ada, sub: '2' })
  expect([one?.name, other?.name]).toEqual(['Ada', 'Ada'])
  expect(one?.subject).toMatch(/^[0-9a-f-]{36}$/)
  expect(again?.subject).toBe(one?.subject)
  expect(other?.subject).not.toBe(one?.subject)
})
