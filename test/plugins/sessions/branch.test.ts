import { describe, expect, it } from 'vitest'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import { branchSession } from '../../../plugins/sessions/branch/branch.ts'
import type { BranchDeps } from '../../../plugins/sessions/branch/branch.ts'
import { BranchStore } from '../../../plugins/sessions/branch/store.ts'
import type { Message } from '../../../plugins/sessions/contract.ts'
import { migrations } from '../../../plugins/sessions/migrations.ts'
import { SessionService } from '../../../plugins/sessions/service.ts'
import { SessionStore } from '../../../plugins/sessions/store.ts'
import { SummaryStore } from '../../../plugins/sessions/summary/store.ts'

const text = (id: string, turnId: string, role: Message['role'], ...more: Message['blocks']): Message => ({
  id,
  turnId,
  role,
  createdAt: '2026-01-01T00:00:00.000Z',
  blocks: [{ type: 'text', text: id, labels: ['UserInput'] }, ...more],
})

describe.each(engines)('on %s', (engine) => {
  it('a branch has the summary up to its end, labels and order; a call without a result is refused', async () => {
    const { database } = await open(engine)
    await database.migrate('sessions', migrations)
    const { log } = recorder()
    const store = new SessionStore(database.sql, log)
    const nothing = database.sql.sql`UPDATE sessions_session SET label = label WHERE id = ''`
    const agents = { require: async () => ({ id: 'a' }), activate: async () => undefined }
    const sessions = new SessionService({
      store,
      summaries: new SummaryStore(database.sql, log),
      agents,
      audit: { entry: () => nothing },
      hooks: {},
      now: () => '2026-02-02T00:00:00.000Z',
    } as never)
    const deps = {
      store: new BranchStore(database.sql, log),
      sessions,
      agents,
      audit: { entry: () => nothing },
      journal: () => ({ open: async () => [] }),
      maxMessages: 10,
      commit: (statements: never) => database.sql.batch(statements),
    } as unknown as BranchDeps
    const call = { type: 'call', id: 'c', tool: 'look', args: {} } as const
    await store.commit([
      ...sessions.ensure('old', 'a', { label: 'Boats' }),
      ...sessions.append('old', text('q1', 't1', 'user')),
      ...sessions.append('old', text('q2', 't2', 'user')),
      // The turn before was answered later.
      ...sessions.append('old', text('a1', 't1', 'assistant')),
      ...sessions.append('old', { ...text('a2', 't2', 'assistant', call), mark: 'interrupted' }),
    ])
    const summary = { sessionId: 'old', labels: ['Pii'], createdAt: '2026-01-02T00:00:00.000Z' } as const
    for (const [id, last, count] of [
      ['early', 'a1', 2],
      ['late', 'q2', 3],
    ] as const)
      await sessions.summarise(
        { ...summary, id, text: id, firstMessageId: 'q1', lastMessageId: last, messageCount: count },
        [],
      )
    const old = await sessions.require('old')
    await expect(branchSession(deps, old, { message: 'a2' })).rejects.toThrow('calls the tool look and has no result')
    const branch = await branchSession(deps, old, { message: 'a1' })
    expect(branch).toMatchObject({ agentId: 'a', label: 'Boats (branch)', messageCount: 2 })
    expect(await sessions.page(branch.id, { limit: 10 })).toMatchObject([
      { role: 'user', blocks: text('q1', '', 'user').blocks },
      { role: 'assistant', blocks: text('a1', '', 'assistant').blocks },
    ])
    expect(await sessions.summary(branch.id)).toMatchObject({ text: 'early', labels: ['Pii'], messageCount: 2 })
    // What is said next comes after what was copied.
    await store.commit(sessions.append(branch.id, text('q3', 't3', 'user')))
    expect((await sessions.page(branch.id, { limit: 10 })).map(({ id }) => id).at(-1)).toBe('q3')
    // A branch is as new as its making, however old what it holds is.
    expect((await store.byActivity()).map(({ id }) => id)).toEqual([branch.id, 'old'])
  })
})
