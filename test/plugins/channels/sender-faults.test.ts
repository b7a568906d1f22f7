import { expect, it } from 'vitest'
import { parse, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { AccountSettings } from '../../../plugins/channels/accounts/settings.ts'
import type { OpenConnection } from '../../../plugins/channels/connections/connections.ts'
import { AccountSender } from '../../../plugins/channels/outbox/account-sender.ts'
import type { OutboxRow } from '../../../plugins/channels/outbox/schema.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { ChatPlatform } from './chat-platform.ts'

// A platform, a clock and other daemons that misbehave while one account sends.

const HOUR_MS = 3_600_000
const MAX_PAUSE_MS = 300_000
const MAX_REJECTIONS = 4
const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: {},
}

function createRow(id: string, chat: string, now: number): OutboxRow {
  return {
    id,
    message_id: id,
    channel: 'test_chat',
    account: 'default',
    chat,
    thread: '',
    seq: id,
    part: 0,
    parts: 1,
    kind: 'answer',
    payload: { text: id, plainText: id },
    state: 'pending',
    attempts: 0,
    uncertain: 0,
    next_at: null,
    platform_id: null,
    error: null,
    agent_id: '',
    turn_id: '',
    created_at: new Date(now).toISOString(),
    settled_at: null,
  }
}

/** An account, its table, and a platform that fails for the rows that `fails` names. */
function stage({ idempotentSend = true, random = 1, perSecond = 1000 } = {}) {
  const clock = new ManualClock()
  const table = new Map<string, OutboxRow>()
  const shown: string[] = []
  const attempts: { readonly id: string; readonly at: number }[] = []
  const adapter = new ChatPlatform().adapter({
    dialect: 'plain',
    maxLength: 100,
    lengthUnit: 'characters',
    idempotentSend,
    rate: { overall: { perSecond, burst: 1 } },
  })
  const connect = (): OpenConnection => ({
    account,
    adapter,
    connection: {
      closed: new Promise<never>(() => undefined),
      send: async () => ({ id: '' }),
      [Symbol.asyncDispose]: async () => undefined,
    },
    signal: new AbortController().signal,
    failed: () => undefined,
    unsigned: () => undefined,
  })
  let open = connect()
  let fails: (id: string) => Error | undefined = () => undefined
  let load = async (): Promise<readonly OutboxRow[]> => waiting()
  const waiting = (): readonly OutboxRow[] =>
    [...table.values()]
      .filter(({ state }) => state === 'pending' || state === 'sending')
      .map((row) => ({ ...row }))
      .sort((a, b) => (a.seq < b.seq ? -1 : 1))
  const store = (row: OutboxRow, state: OutboxRow['state']): void => void table.set(row.id, { ...row, state })
  const sender = new AccountSender({
    clock,
    random: () => random,
    maxAttempts: 10,
    resendUncertain: true,
    giveUpMs: 24 * HOUR_MS,
    maxConcurrent: 4,
    maxRejections: MAX_REJECTIONS,
    maxFailedChats: 3,
    backOff: { minMs: 1000, maxMs: MAX_PAUSE_MS },
    signal: new AbortController().signal,
    connection: () => open,
    load: () => load(),
    sending: async (row) => {
      if (table.get(row.id)?.state !== 'pending' && table.get(row.id)?.state !== 'sending') return false
      store(row, 'sending')
      return true
    },
    notSent: async (row) => store(row, 'pending'),
    deferred: async (row) => store(row, 'pending'),
    sent: async (row) => store(row, 'sent'),
    dead: async (row) => store(row, 'dead'),
    transmit: async (_open, { id }) => {
      attempts.push({ id, at: clock.now() })
      const error = fails(id)
      if (error) throw error
      shown.push(id)
      return { id }
    },
    background: (work) => void work(),
  })
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    clock,
    table,
    shown,
    attempts,
    sender,
    settle,
    stateOf: (id: string) => table.get(id)?.state,
    /** Puts rows on disk, and into the sender. */
    add: async (...rows: readonly (readonly [id: string, chat: string])[]) => {
      for (const [id, chat] of rows) {
        const row = createRow(id, chat, clock.now())
        table.set(id, { ...row })
        sender.add(row)
      }
      await settle()
    },
    pass: async (ms: number) => {
      clock.advance(ms)
      await settle()
    },
    reconnect: () => {
      open = connect()
      sender.wake()
    },
    failFor: (broken: (id: string) => Error | undefined) => {
      fails = broken
    },
    readWith: (read: () => Promise<readonly OutboxRow[]>) => {
      load = read
    },
    waiting,
  }
}
const serverError = () => new UpstreamFailure('test_chat', 'HTTP 500', { reason: 'server_error', retry: 'later' })

it('a message for which the platform always fails is a dead letter while it takes those of other chats', async () => {
  const { add, pass, failFor, stateOf, shown } = stage()
  failFor((id) => (id === '1-poison' ? serverError() : undefined))
  await add(['1-poison', 'a'], ['2-behind', 'a'])
  for (let n = 0; stateOf('1-poison') === 'pending' && n < 50; n++) {
    await add([`3-${n}`, 'b'])
    await pass(1000)
  }
  expect(stateOf('1-poison')).toBe('dead')
  await pass(1000)
  expect(shown.indexOf('2-behind')).toBeGreaterThan(0)
})

it('alone in an account it is a dead letter as soon as the platform takes the message behind it, not before', async () => {
  const { add, pass, failFor, stateOf, shown } = stage()
  let isAway = true
  failFor((id) => (isAway || id === '1-poison' ? serverError() : undefined))
  await add(['1-poison', 'a'], ['2-behind', 'a'], ['3-last', 'a'])
  for (let n = 0; n < 100; n++) await pass(MAX_PAUSE_MS)
  expect([stateOf('1-poison'), stateOf('2-behind'), stateOf('3-last')]).toEqual(['pending', 'pending', 'pending'])
  isAway = false
  for (let n = 0; n < 3; n++) await pass(MAX_PAUSE_MS)
  expect(shown).toEqual(['2-behind', '3-last'])
  expect(stateOf('1-poison')).toBe('dead')
})

it('a platform that fails in several chats gets one message at a time, and everything in order when it is back', async () => {
  const { add, pass, failFor, attempts, shown } = stage()
  let isAway = true
  failFor(() => (isAway ? serverError() : undefined))
  const chats = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const chat of chats) await add([`1-${chat}`, chat], [`2-${chat}`, chat])
  for (let n = 0; n < 10; n++) await pass(MAX_PAUSE_MS)
  const before = attempts.length
  await pass(MAX_PAUSE_MS)
  expect(attempts.length - before).toBe(1)
  isAway = false
  for (let n = 0; n < 4; n++) await pass(MAX_PAUSE_MS)
  expect(shown).toHaveLength(12)
  for (const chat of chats) expect(shown.indexOf(`1-${chat}`)).toBeLessThan(shown.indexOf(`2-${chat}`))
})

it.each([
  ['the time that the platform asks for', 1, 7, 7000],
  ['half of the pause at least', 0, undefined, 500],
  ['the whole pause at most', 1, undefined, 1000],
])('a second attempt waits for %s', async (_name, random, retryAfterSecs, pauseMs) => {
  const { add, pass, failFor, attempts } = stage({ random })
  const failure = { reason: 'rate_limit' as const, retry: 'later' as const }
  failFor(() =>
    attempts.length > 1
      ? undefined
      : new UpstreamFailure(
          'test_chat',
          'busy',
          retryAfterSecs === undefined ? failure : { ...failure, retryAfterSecs },
        ),
  )
  await add(['1', 'a'])
  await pass(pauseMs - 1)
  expect(attempts).toHaveLength(1)
  await pass(1)
  expect(attempts).toHaveLength(2)
})

it('what would go to an address that the daemon may not reach is a dead letter at once, with the reason', async () => {
  const it = stage()
  const hint = 'Requests to 10.1.2.3 are refused. To permit it, add "10.1.2.3" to [outbound] allow'
  it.failFor(() => new Refusal('forbidden', hint))
  await it.add(['one', 'a'])
  expect([it.attempts.length, it.table.get('one')]).toMatchObject([1, { state: 'dead', error: hint, uncertain: 0 }])
})

it('what was rejected with the credentials is sent as soon as the account is connected with others', async () => {
  const it = stage()
  it.failFor(() => new UpstreamFailure('test_chat', 'revoked', { reason: 'auth', retry: 'never' }))
  await it.add(['one', 'a'], ['two', 'a'])
  expect(it.attempts).toHaveLength(1)
  it.failFor(() => undefined)
  it.reconnect()
  for (let ms = 0; ms < 10; ms++) await it.pass(1)
  expect(it.shown).toEqual(['one', 'two'])
})

it('a message that another daemon sent meanwhile is not sent again', async () => {
  const { add, pass, failFor, table, attempts, stateOf } = stage({ idempotentSend: false })
  failFor(() => new UpstreamFailure('test_chat', 'busy', { reason: 'rate_limit', retry: 'later' }))
  await add(['1', 'a'])
  table.set('1', { ...createRow('1', 'a', 0), state: 'sent' })
  await pass(MAX_PAUSE_MS)
  expect([attempts.length, stateOf('1')]).toEqual([1, 'sent'])
})

it('a new connection reads anew what waits, as another daemon may have been connected', async () => {
  const { add, pass, failFor, table, settle, reconnect, shown } = stage()
  failFor(() => new UpstreamFailure('test_chat', 'busy', { reason: 'rate_limit', retry: 'later' }))
  await add(['1', 'a'], ['2', 'a'])
  table.set('1', { ...createRow('1', 'a', 0), state: 'sent' })
  failFor(() => undefined)
  reconnect()
  await settle()
  await pass(MAX_PAUSE_MS)
  expect(shown).toEqual(['2'])
})

it('a message that is sent while the table is read is not sent again; what others added is', async () => {
  const { add, pass, settle, readWith, waiting, sender, shown, table, failFor, attempts } = stage()
  failFor(() => (attempts.length > 1 ? undefined : serverError()))
  await add(['1', 'a'])
  table.set('2', createRow('2', 'a', 0))
  const isRead = Promise.withResolvers<void>()
  readWith(async () => {
    const rows = waiting()
    await isRead.promise
    return rows
  })
  sender.refresh()
  await pass(1000)
  expect(shown).toEqual(['1'])
  isRead.resolve()
  await settle()
  await pass(1000)
  expect(shown).toEqual(['1', '2'])
})

it('an attempt that another process did not end counts as one of unknown outcome', async () => {
  const { table, sender, settle } = stage({ idempotentSend: false })
  table.set('1', { ...createRow('1', 'a', 0), state: 'sending', attempts: 1 })
  sender.wake()
  await settle()
  expect(table.get('1')).toMatchObject({ state: 'sent', uncertain: 1, attempts: 2 })
})

it('a clock that is set back by a day delays nothing', async () => {
  const { add, pass, failFor, clock, shown, attempts } = stage({ perSecond: 1 })
  failFor(() => (attempts.length > 1 ? undefined : serverError()))
  await add(['1', 'a'])
  const { now } = clock
  clock.now = () => now.call(clock) - 24 * HOUR_MS
  await pass(1000)
  await pass(1000)
  await add(['2', 'a'])
  await pass(1000)
  expect(shown).toEqual(['1', '2'])
})
