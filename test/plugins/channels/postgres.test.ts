import { expect, it } from 'vitest'
import { adapter, account, message, openTables, startInbox } from './inbox-stage.ts'

it('messages are stored in PostgreSQL and answered, whatever their texts and ids hold', async () => {
  const db = await openTables('postgresql')
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const hostile = 'a\0b \uD800'
  for (const id of ['first', hostile, hostile]) await one.receive(id)
  await one.inbox.receive(account, adapter, { ...message('third'), chat: { id: hostile, kind: 'direct' } })
  const read = () => db.all<{ state: string; conversation: string }>`SELECT state, conversation FROM channels_inbox`
  await expect.poll(async () => (await read()).map(({ state }) => state)).toEqual(['done', 'done', 'done'])
  expect(answered).toHaveLength(3)
  const rows = await read()
  expect(new Set(rows.map(({ conversation }) => conversation)).size).toBe(2)
})
