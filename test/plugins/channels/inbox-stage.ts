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
import { open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { ChatPlatform } from './chat-platform.ts'

// An inbox on a database and a clock of the test.

export const LEASE_MS = 30_000
export const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: {},
}
export const adapter = new ChatPlatform().adapter({
  dialect: 'plain',
  maxLength: 100,
  lengthUnit: 'characters',
  idempotentSend: true,
  rate: { overall: { perSecond: 1000, burst: 1000 } },
})
export const message = (id: string): InboundMessage => ({
  id,
  chat: { id: 'chat-1', kind: 'direct' },
  sender: { id: 'ada', name: 'Ada' },
  text: id,
  attachments: [],
  mentionsBot: false,
  sentAt: '2026-01-01T00:00:00.000Z',
})
export const noStatements = { audit: { entry: () => ({ sql: 'SELECT 1', values: [] }) }, giveUp: async () => [] }

export async function openTables(engine: EngineName = 'sqlite'): Promise<PluginDatabase> {
  const { database } = await open(engine)
  await database.migrate('channels', migrations)
  return database.sql
}

/**
 * The inbox of one daemon. What it answers is in `answered`; it works on nothing while `hold` is set. `given` answers in
 * its place.
 */
export function startInbox(db: PluginDatabase, home: string, answered: string[], given?: InboxDeps['handle']) {
  const clock = new ManualClock()
  const ended = new AbortController()
  let held: Promise<void> | undefined
  let release = (): void => undefined
  let postponed = 0
  const answer = async (row: InboxRow): Promise<Handled> => {
    if (postponed-- > 0) return { outcome: 'postponed', reason: 'not now', afterMs: 5_000 }
    await held
    if (ended.signal.aborted) return { outcome: 'released' }
    answered.push(`${home} ${row.message.text}`)
    return { outcome: 'answered', agentId: '', statements: [] }
  }
  const deps: InboxDeps = {
    ...noStatements,
    store: new InboxStore(db, recorder().log),
    owners: new OwnerStore(db),
    home,
    admission: {
      decide: async () => ({ verdict: 'accepted', standing: 'user' }),
      remember: () => undefined,
    } as unknown as InboxDeps['admission'],
    clock,
    log: { debug: () => undefined, warn: () => undefined, error: () => undefined },
    messages: { add: () => undefined },
    settings: { max_attempts: 10, dedupe_hours: 72, give_up_hours: 24, max_conversations: 10, lease_secs: 30 },
    signal: ended.signal,
    // A plugin logs what fails.
    background: (work) => void work().catch(() => undefined),
    isUrgent: () => false,
    handle: given ?? answer,
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
    clock,
    /** The next attempts to answer are postponed by five seconds. */
    postpone: (count: number) => void (postponed = count),
    /** The process is killed: nothing of it goes on. */
    kill: () => {
      ended.abort()
      release()
      return settle()
    },
    release: () => release(),
  }
}
