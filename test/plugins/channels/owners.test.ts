import { expect, it } from 'vitest'
import { parse } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import type { PluginDatabase } from 'svc/sdk'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { AccountSettings } from '../../../plugins/channels/accounts/settings.ts'
import { Inbox } from '../../../plugins/channels/inbox/inbox.ts'
import type { Handled, InboxDeps } from '../../../plugins/channels/inbox/inbox.ts'
import { OwnerStore } from '../../../plugins/channels/inbox/owners/store.ts'
import type { InboxRow } from '../../../plugins/channels/inbox/schema.ts'
import { InboxStore } from '../../../plugins/channels/inbox/store.ts'
import { migrations } from '../../../plugins/channels/migrations.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { open } from '../../core/storage/engines.ts'
import { ChatPlatform } from './chat-platform.ts'

// Several daemons on one database.

const LEASE_MS = 30_000
const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: {},
}
const adapter = new ChatPlatform().adapter({
  dialect: 'plain',
  maxLength: 100,
  lengthUnit: 'characters',
  idempotentSend: true,
  rate: { overall: { perSecond: 1000, burst: 1000 } },
})
const message = (id: string): InboundMessage => ({
  id,
  chat: { id: 'chat-1', kind: 'direct' },
  sender: { id: 'ada', name: 'Ada' },
  text: id,
  attachments: [],
  mentionsBot: false,
  sentAt: '2026-01-01T00:00:00.000Z',
})
const noStatements = { audit: { entry: () => ({ sql: 'SELECT 1', values: [] }) }, giveUp: async () => [] }

async function openTables(): Promise<PluginDatabase> {
  const { database } = await open('sqlite')
  await database.migrate('channels', migrations)
  return database.sql
}

/** The inbox of one daemon. What it answers is in `answered`; it works on nothing while `hold` is set. */
function startInbox(db: PluginDatabase, home: string, answered: string[]) {
  const clock = new ManualClock()
  const ended = new AbortController()
  let held: Promise<void> | undefined
  let release = (): void => undefined
  const handle = async (row: InboxRow): Promise<Handled> => {
    await held
    if (ended.signal.aborted) return { outcome: 'released' }
    answered.push(`${home} ${row.message.text}`)
    return { outcome: 'answered', agentId: '', statements: [] }
  }
  const deps: InboxDeps = {
    ...noStatements,
    store: new InboxStore(db),
    owners: new OwnerStore(db),
    home,
    admission: {
      decide: async () => ({ verdict: 'accepted', standing: 'user' }),
      remember: () => undefined,
    } as unknown as InboxDeps['admission'],
    clock,
    log: { warn: () => undefined, error: () => undefined },
    messages: { add: () => undefined },
    settings: { max_attempts: 10, dedupe_hours: 72, give_up_hours: 24, max_conversations: 10, lease_secs: 30 },
    signal: ended.signal,
    background: (work) => void work(),
    isUrgent: () => false,
    handle,
    notify: async () => undefined,
    received: () => undefined,
  }
  const inbox = new Inbox(deps)
  /** Settles when nothing goes on but what is held. */
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    inbox,
    settle,
    receive: (id: string) => inbox.receive(account, adapter, message(id)),
    /** Time passes: its lease is renewed once. */
    beat: async () => {
      clock.advance(LEASE_MS / 3)
      await settle()
    },
    hold: () => {
      ;({ promise: held, resolve: release } = Promise.withResolvers<void>())
    },
    /** The process is killed: nothing of it goes on. */
    kill: () => {
      ended.abort()
      release()
      return settle()
    },
    release: () => release(),
  }
}

const states = async (db: PluginDatabase): Promise<readonly unknown[]> =>
  (await db.all<{ state: string }>`SELECT state FROM channels_inbox ORDER BY id`).map(({ state }) => state)

it('a daemon that starts leaves the messages of a living one alone', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  await one.receive('first')
  await one.receive('second')
  await two.inbox.resume()
  for (let beats = 0; beats < 6; beats++) {
    await one.beat()
    await two.beat()
    await two.inbox.resume()
  }
  await two.settle()
  expect(answered).toEqual([])
  one.release()
  await one.settle()
  expect(answered).toEqual(['one first', 'one second'])
  expect(await states(db)).toEqual(['done', 'done'])
})

it('the messages of a daemon that died are answered once by another, in their order, after the lease', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const others = ['two', 'three'].map((home) => startInbox(db, home, answered))
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  for (const other of others) await other.inbox.resume()
  await one.kill()
  for (let beats = 0; beats < 3; beats++) for (const other of others) await other.beat()
  expect(answered).toEqual([])
  for (const other of others) await other.beat()
  expect(answered).toEqual(['two first', 'two second'])
  expect(await states(db)).toEqual(['done', 'done'])
})

it('a daemon that starts again on its home goes on at once', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  one.hold()
  await one.receive('first')
  await one.kill()
  const again = startInbox(db, 'one', answered)
  await again.inbox.resume()
  await again.settle()
  expect(answered).toEqual(['one first'])
})

it('a daemon that ends in order leaves its messages to another at the next beat', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  await one.receive('first')
  await two.inbox.resume()
  await one.kill()
  await one.inbox.close()
  await two.beat()
  expect(answered).toEqual(['two first'])
})

it('a daemon that stood still for longer than its lease works on new messages only', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  await two.inbox.resume()
  for (let beats = 0; beats < 4; beats++) await two.beat()
  expect(answered).toEqual(['two first', 'two second'])
  await one.beat()
  await one.receive('third')
  one.release()
  await one.settle()
  expect(answered.filter((each) => each.endsWith('second'))).toEqual(['two second'])
  expect(answered.at(-1)).toBe('one third')
  expect(await states(db)).toEqual(['done', 'done', 'done'])
})

it('a message whose attempts were all cut short is put aside, and those behind it are answered', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  await one.kill()
  await db.run`UPDATE channels_inbox SET attempts = 10 WHERE message_id = 'first'`
  const again = startInbox(db, 'one', answered)
  await again.inbox.resume()
  await again.settle()
  expect(answered).toEqual(['one second'])
  const rows = await db.all`SELECT state, reason FROM channels_inbox ORDER BY id`
  expect(rows).toMatchObject([
    { state: 'parked', reason: 'the attempts to answer it were not ended' },
    { state: 'done' },
  ])
})
