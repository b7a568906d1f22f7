import { expect, it } from 'vitest'
import { parse } from 'svc/sdk'
import type { ChannelCapabilities, ChannelConnection } from 'svc/channels'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { AccountSettings } from '../../../plugins/channels/accounts/settings.ts'
import { migrations } from '../../../plugins/channels/migrations.ts'
import { stableId } from 'svc/internal'
import { TurnAnswerer } from '../../../plugins/channels/inbox/turn-answerer.ts'
import type { Received, TurnAnswererDeps } from '../../../plugins/channels/inbox/turn-answerer.ts'
import { partId } from '../../../plugins/channels/outbox/message.ts'
import type { OutgoingMessage } from '../../../plugins/channels/outbox/message.ts'
import { Outbox } from '../../../plugins/channels/outbox/outbox.ts'
import { OutboxStore } from '../../../plugins/channels/outbox/store.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { open as openDatabase, recorder } from '../../core/storage/engines.ts'
import { ChatPlatform } from './chat-platform.ts'

// What was shown of an answer while it was written, when the answer is there.

const account: Account = {
  channel: 'test_chat',
  id: 'default',
  enabled: true,
  source: 'file',
  settings: parse(AccountSettings, {}),
  config: {},
}
const to = { chatId: 'chat-1' }
const messageId = stableId('answer')

async function stage({ idempotentSend = false, canDelete = false, resendUncertain = true } = {}) {
  const { database } = await openDatabase('sqlite')
  await database.migrate('channels', migrations)
  const calls: string[] = []
  const receipts: string[] = []
  const settled: string[] = []
  const capabilities: ChannelCapabilities = {
    dialect: 'plain',
    maxLength: 100,
    lengthUnit: 'characters',
    idempotentSend,
    edit: { minIntervalMs: 1 },
    rate: { overall: { perSecond: 1000, burst: 1000 } },
  }
  const connection: ChannelConnection = {
    closed: new Promise<never>(() => undefined),
    send: async ({ text }) => {
      calls.push(`send ${text}`)
      return { id: 'new' }
    },
    edit: async ({ id }, { text }) => void calls.push(`edit ${id} ${text}`),
    ...(canDelete && { delete: async ({ id }) => void calls.push(`delete ${id}`) }),
    [Symbol.asyncDispose]: async () => undefined,
  }
  const adapter = new ChatPlatform().adapter(capabilities)
  const open = {
    account,
    adapter,
    connection,
    signal: new AbortController().signal,
    failed: () => undefined,
    unsigned: () => undefined,
  }
  const nothing = () => ({ sql: 'SELECT 1', values: [] })
  const outbox = new Outbox({
    store: new OutboxStore(database.sql, recorder().log),
    connections: { find: () => open },
    journal: {
      intend: nothing,
      settle: (_key, _state, result) => {
        receipts.push(result)
        return nothing()
      },
    },
    audit: { entry: nothing },
    clock: new ManualClock(),
    settings: {
      max_attempts: 10,
      resend_uncertain: resendUncertain,
      give_up_hours: 24,
      max_concurrent_sends: 4,
      max_rejections: 8,
      format_chars: 16_000,
      max_failed_chats: 3,
      send_retry_min_ms: 1,
      send_retry_max_ms: 10,
    },
    log: { warn: () => undefined, error: () => undefined },
    sends: { add: () => undefined },
    signal: new AbortController().signal,
    background: (work) => void work(),
    readFile: async () => new Uint8Array(),
    settled: ({ id }) => void settled.push(id),
  })
  const draft = (part: number) => ({
    id: partId(messageId, part),
    messageId,
    part,
    account,
    to,
    agentId: 'a',
    turnId: 't',
  })
  return {
    calls,
    receipts,
    settled,
    draft: () => outbox.draft(draft(0)),
    /** Shows parts; one without an id was shown when the process died. */
    show: async (...ids: readonly (string | undefined)[]) => {
      for (const [part, id] of ids.entries()) {
        await outbox.draft(draft(part))
        if (id !== undefined) await outbox.draft(draft(part), id)
      }
    },
    /** Adds the answer as a process does that reads the drafts from disk, and waits for so many calls. */
    answer: async (text: string, count: number) => {
      const drafts = await outbox.drafts(messageId)
      await outbox.send({ id: messageId, kind: 'answer', account, capabilities, to, text, drafts, turnId: 't' })
      for (let turn = 0; turn < 200 && (calls.length < count || settled.length === 0); turn++)
        await new Promise((resolve) => setImmediate(resolve))
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

it('one whose id was lost is sent again, and the receipt says that it may be there twice', async () => {
  const { calls, receipts, show, answer } = await stage()
  await show(undefined)
  await answer('The answer.', 1)
  expect(calls).toEqual(['send The answer.'])
  expect(receipts).toEqual(['best_effort'])
})

it('one whose id was lost is a dead letter where nothing that may have arrived is sent again', async () => {
  const { calls, receipts, settled, show, answer } = await stage({ resendUncertain: false })
  await show(undefined)
  await answer('The answer.', 0)
  expect([calls, settled]).toEqual([[], [partId(messageId, 0)]])
  expect(receipts).toEqual([expect.stringContaining('it may have arrived')])
})

it('one of a message that was postponed is replaced, although that counts as no attempt', async () => {
  const added: OutgoingMessage[] = []
  const result = { text: 'The answer.', stop: 'done' }
  const turn = { events: async function* () {}, result: async () => result }
  const deps = {
    turns: { find: async () => ({ agentId: 'a' }), replay: async () => turn },
    outbox: {
      drafts: async () => new Map([[0, 'p-0']]),
      add: async (message: OutgoingMessage) => (added.push(message), []),
    },
    connections: { find: () => undefined },
    hooks: { apply: async (_hook: unknown, value: unknown) => value },
    clock: new ManualClock(),
    background: () => undefined,
    signal: new AbortController().signal,
  }
  const answerer = new TurnAnswerer(deps as unknown as TurnAnswererDeps)
  const row = { id: 'm', attempts: 1, reason: 'The database server does not answer', message: { chat: {}, id: 'm' } }
  const received = { row, account, adapter: { capabilities: { edit: {} } }, to } as unknown as Received
  expect(await answerer.begun(received)).toEqual({ agentId: 'a' })
  await answerer.resume(received, 'a')
  expect(added.map(({ drafts }) => drafts?.get(0))).toEqual(['p-0'])
})

it('none is shown once the answer is there', async () => {
  const { draft, answer } = await stage()
  expect(await draft()).toBe(true)
  await answer('The answer.', 1)
  expect(await draft()).toBe(false)
})

it('one whose id was lost gets the whole text where the platform knows the message by its key', async () => {
  const { calls, receipts, show, answer } = await stage({ idempotentSend: true })
  await show(undefined)
  await answer('The answer.', 2)
  expect(calls).toEqual(['send The answer.', 'edit new The answer.'])
  expect(receipts).toEqual(['sent'])
})

it.each([
  ['removed', true, ['edit p-0 Short.', 'delete p-1', 'delete p-2']],
  [
    'replaced where the platform removes none',
    false,
    ['edit p-0 Short.', 'edit p-1 See above.', 'edit p-2 See above.'],
  ],
])('parts beyond the final text are %s, and are no results', async (_name, canDelete, expected) => {
  const { calls, receipts, show, answer } = await stage({ canDelete })
  await show('p-0', 'p-1', 'p-2')
  await answer('Short.', 3)
  expect(calls).toEqual(expected)
  expect(receipts).toEqual(['sent'])
})
