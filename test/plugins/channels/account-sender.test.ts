import { expect, it } from 'vitest'
import { parse, UpstreamFailure } from 'svc/sdk'
import type { ChannelConnection } from 'svc/channels'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { AccountSettings } from '../../../plugins/channels/accounts/settings.ts'
import { toIso } from '../../../core/scope/clock.ts'
import { AccountSender } from '../../../plugins/channels/outbox/account-sender.ts'
import type { OutboxRow } from '../../../plugins/channels/outbox/schema.ts'
import { OutboxStore } from '../../../plugins/channels/outbox/store.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { ChatPlatform } from './chat-platform.ts'
import { recorder } from '../../core/storage/engines.ts'
import { openTables } from './inbox-stage.ts'

const HOUR_MS = 3_600_000
const LONGEST_PAUSE_MS = 300_000
const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: {},
}
const connection: ChannelConnection = {
  closed: new Promise<never>(() => undefined),
  send: async () => ({ id: 'p-1' }),
  [Symbol.asyncDispose]: async () => undefined,
}

function createRow(at: string): OutboxRow {
  return {
    id: 'm-1',
    message_id: 'm-1',
    channel: 'test_chat',
    account: 'default',
    chat: 'c-1',
    thread: '',
    seq: '1',
    part: 0,
    parts: 1,
    kind: 'answer',
    payload: { text: 'hi', plainText: 'hi' },
    state: 'pending',
    attempts: 0,
    uncertain: 0,
    next_at: null,
    platform_id: null,
    error: null,
    agent_id: '',
    turn_id: '',
    created_at: at,
    settled_at: null,
  }
}
interface Options extends Partial<OutboxRow> {
  readonly resendUncertain?: boolean
  readonly sending?: (end: () => void) => Promise<boolean>
}
/** An account with one message, which is sent whenever the time has come; ten attempts, 24 hours. */
function createSender(
  idempotentSend: boolean,
  outcome: (attempt: number) => Error | undefined,
  { resendUncertain = true, sending, ...earlier }: Options = {},
) {
  const clock = new ManualClock()
  const row = { ...createRow(toIso(clock.now())), ...earlier }
  const works: Promise<void>[] = []
  const platform = new ChatPlatform()
  const adapter = platform.adapter({
    dialect: 'plain',
    maxLength: 100,
    lengthUnit: 'characters',
    idempotentSend,
    rate: { overall: { perSecond: 1000, burst: 1000 } },
  })
  const ending = new AbortController()
  const open = {
    account,
    adapter,
    connection,
    signal: ending.signal,
    failed: () => undefined,
    unsigned: () => undefined,
  }
  let attempts = 0
  const sender = new AccountSender({
    clock,
    random: () => 1,
    maxAttempts: 10,
    resendUncertain,
    giveUpMs: 24 * HOUR_MS,
    maxConcurrent: 1,
    backOff: { minMs: 1000, maxMs: LONGEST_PAUSE_MS },
    signal: new AbortController().signal,
    connection: () => (ending.signal.aborted ? undefined : open),
    load: async () => [row],
    sending: async () => sending?.(() => ending.abort()) ?? true,
    notSent: async () => void (row.state = 'pending'),
    maxRejections: 8,
    maxFailedChats: 3,
    deferred: async () => undefined,
    sent: async () => void (row.state = 'sent'),
    dead: async () => void (row.state = 'dead'),
    transmit: async () => {
      const error = outcome(++attempts)
      if (error) throw error
      return { id: 'p-1' }
    },
    background: (work) => void works.push(work()),
  })
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += LONGEST_PAUSE_MS) {
      clock.advance(LONGEST_PAUSE_MS)
      await settle()
    }
  }
  const settle = async (): Promise<void> => {
    for (let work = works.shift(); work; work = works.shift()) await work
  }
  sender.wake()
  return { row, clock, sender, pass, settle, attempts: () => attempts }
}

const failure = (reason: 'rate_limit' | 'overloaded' | 'network' | 'timeout', code?: string) =>
  new UpstreamFailure('test_chat', reason, {
    reason,
    retry: 'later',
    ...(code !== undefined && { cause: Object.assign(new Error(code), { code }) }),
  })

it.each([
  ['fails without an answer', {}, failure('timeout'), 'dead', 1],
  ['was being sent when the daemon died', { attempts: 1, uncertain: 1 }, undefined, 'dead', 0],
  ['somebody wants sent again', { attempts: 0, uncertain: 1 }, undefined, 'sent', 1],
] as const)('without resend_uncertain, what %s', async (_name, earlier, error, state, sends) => {
  const { row, settle, attempts } = createSender(false, () => error, { ...earlier, resendUncertain: false })
  await settle()
  expect([row.state, attempts()]).toEqual([state, sends])
  if (state === 'dead') expect(row.error).toContain('it may have arrived')
})

it('what was about to be sent when the connection ended is not sent by this daemon, and counts no attempt', async () => {
  const sending = async (end: () => void): Promise<boolean> => {
    end()
    return true
  }
  const { row, settle, attempts } = createSender(false, () => undefined, { sending })
  await settle()
  expect([row.state, row.attempts, attempts()]).toEqual(['pending', 0, 0])
})

it('of two daemons that are about to send the same row, one does', async () => {
  const store = new OutboxStore(await openTables(), recorder().log)
  const row = createRow('2026-01-01T00:00:00.000Z')
  await store.commit([store.insert(row, () => undefined)])
  const first = { ...row, attempts: 1 }
  expect([await store.beginSend(first), await store.beginSend({ ...row, attempts: 1 })]).toEqual([true, false])
  await store.endSend(first)
  expect(await store.beginSend({ ...row, attempts: 1 })).toBe(true)
})

it('without resend_uncertain, what the platform did not get or recognizes is sent again', async () => {
  for (const [isIdempotent, error] of [
    [false, failure('network', 'ECONNREFUSED')],
    [true, failure('timeout')],
  ] as const) {
    const once = (attempt: number) => (attempt === 1 ? error : undefined)
    const { row, pass, settle } = createSender(isIdempotent, once, { resendUncertain: false })
    await settle()
    await pass(HOUR_MS)
    expect(row.state).toBe('sent')
  }
})

it.each([
  ['busy', false, failure('rate_limit')],
  ['overloaded', false, failure('overloaded')],
  ['away: it refuses connections', false, failure('network', 'ECONNREFUSED')],
  ['away: its name is not found', false, failure('network', 'ENOTFOUND')],
  ['silent, and knows a message that it has', true, failure('timeout')],
])('a platform that is %s is waited for until give_up_hours', async (_name, isIdempotent, error) => {
  const { row, pass, settle, attempts } = createSender(isIdempotent, () => error)
  await settle()
  await pass(23 * HOUR_MS)
  expect(row.state).toBe('pending')
  expect(attempts()).toBeGreaterThan(100)
  await pass(HOUR_MS)
  expect(row.state).toBe('dead')
})

it.each([
  ['that may each show a copy', false, failure('network', 'ECONNRESET')],
  ['without an answer', false, failure('timeout')],
  ['that fail for an unknown reason', true, new TypeError('a defect')],
])('attempts %s are max_attempts at most', async (_name, isIdempotent, error) => {
  const { row, pass, settle, attempts } = createSender(isIdempotent, () => error)
  await settle()
  await pass(2 * HOUR_MS)
  expect([row.state, attempts()]).toEqual(['dead', 10])
})

it('an attempt of unknown outcome after many that did not reach the platform is not the last', async () => {
  const { row, pass, settle, attempts } = createSender(false, (attempt) => {
    if (attempt <= 50) return failure('network', 'ECONNREFUSED')
    return attempt === 51 ? failure('timeout') : undefined
  })
  await settle()
  await pass(6 * HOUR_MS)
  expect([row.state, attempts(), row.uncertain]).toEqual(['sent', 52, 1])
})

it('a clock that is set back holds up no message, however often others look for work', async () => {
  const it = createSender(true, (attempt) => (attempt === 1 ? failure('overloaded') : undefined))
  await it.settle()
  expect(it.row.next_at).not.toBeNull()
  it.clock.jump(-24 * HOUR_MS)
  it.sender.refresh()
  await it.settle()
  expect(it.attempts()).toBe(1)
  await it.pass(LONGEST_PAUSE_MS)
  expect(it.row.state).toBe('sent')
})

it('of a pause that an earlier process began no more than an hour is kept', async () => {
  const it = createSender(true, () => undefined, { next_at: toIso(24 * HOUR_MS), attempts: 1 })
  await it.settle()
  expect(it.attempts()).toBe(0)
  await it.pass(HOUR_MS)
  expect(it.row.state).toBe('sent')
})
