import { describe, expect, it } from 'vitest'
import type { Statement } from '../../../core/storage/database.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { branchSession, removeAbandoned } from '../../../plugins/sessions/branch/branch.ts'
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

async function openSessions(engine: EngineName) {
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
    maxMessages: 1000,
    commit: (statements: readonly Statement[]) => database.sql.batch(statements),
    log,
    now: () => Date.parse('2026-02-02T00:00:00.000Z'),
  } as unknown as BranchDeps
  /** A conversation of so many messages. */
  const talk = async (count: number) => {
    const said = Array.from({ length: count }, (_, n) => text(`m${n}`, `t${n}`, 'user'))
    await store.commit([
      ...sessions.ensure('old', 'a', { label: 'Boats' }),
      ...said.flatMap((message) => sessions.append('old', message, { opens: true })),
    ])
    return sessions.require('old')
  }
  const rowsOf = async (id: string): Promise<number> => {
    const row = await database.sql.one<{
      n: unknown
    }>`SELECT count(*) AS n FROM sessions_message WHERE session_id = ${id}`
    return Number(row?.n)
  }
  return { database, store, sessions, deps, talk, rowsOf }
}

describe.each(engines)('on %s', (engine) => {
  it('a branch has the summary up to its end, labels and order; a call without a result is refused', async () => {
    const { store, sessions, deps } = await openSessions(engine)
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

  it('copies in slices, between which others have their turn, and tells nobody of it before the end', async () => {
    const { sessions, deps, talk } = await openSessions(engine)
    const old = await talk(450)
    const sizes: number[] = []
    const shown: (number | undefined)[] = []
    const commit: BranchDeps['commit'] = async (statements) => {
      sizes.push(statements.length)
      shown.push((await sessions.find('new'))?.messageCount)
      return deps.commit(statements)
    }
    await branchSession({ ...deps, commit }, old, { id: 'new' })
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200)
    expect(sizes.filter((size) => size > 10)).toEqual([200, 200, 50])
    expect(new Set(shown)).toEqual(new Set([undefined]))
    expect(await sessions.require('new')).toMatchObject({ messageCount: 450 })
    expect((await sessions.page('new', { limit: 1000 })).map(({ blocks }) => blocks)).toEqual(
      (await sessions.page('old', { limit: 1000 })).map(({ blocks }) => blocks),
    )
  })

  it('a copy that was cut off is no conversation; it can be made again, and what is left of it goes', async () => {
    const { sessions, deps, talk, rowsOf } = await openSessions(engine)
    const old = await talk(450)
    /** As when the daemon is killed after the second slice: nothing is done afterwards. */
    const cutOff = (id: string): Promise<void> =>
      new Promise((resolve) => {
        let count = 0
        const commit: BranchDeps['commit'] = async (statements) => {
          if (++count <= 3) return deps.commit(statements)
          resolve()
          return new Promise(() => undefined)
        }
        void branchSession({ ...deps, commit }, old, { id })
      })
    await cutOff('new')
    await cutOff('other')
    expect([await rowsOf('new'), await rowsOf('other')]).toEqual([400, 400])
    expect((await sessions.list('a')).map(({ id }) => id)).toEqual(['old'])
    await branchSession(deps, old, { id: 'new' })
    expect([await rowsOf('new'), (await sessions.require('new')).messageCount]).toEqual([450, 450])
    // It may be another daemon that is at it.
    await removeAbandoned(deps)
    expect(await rowsOf('other')).toBe(400)
    await removeAbandoned({ ...deps, now: () => deps.now() + 2 * 3_600_000 })
    expect([await rowsOf('other'), await rowsOf('new')]).toEqual([0, 450])
  })

  it('a copy that fails leaves nothing, also when the conversation is deleted meanwhile', async () => {
    const { store, sessions, deps, talk, rowsOf } = await openSessions(engine)
    const old = await talk(450)
    let count = 0
    const failing: BranchDeps['commit'] = async (statements) => {
      if (++count === 3) throw new Error('no room')
      return deps.commit(statements)
    }
    await expect(branchSession({ ...deps, commit: failing }, old, { id: 'new' })).rejects.toThrow('no room')
    expect(await rowsOf('new')).toBe(0)
    const deleting: BranchDeps['commit'] = async (statements) => {
      if (++count === 7) await store.commit(store.clear('old'))
      return deps.commit(statements)
    }
    await expect(branchSession({ ...deps, commit: deleting }, old, { id: 'new' })).rejects.toThrow('deleted meanwhile')
    expect([await rowsOf('new'), await sessions.find('new')]).toEqual([0, undefined])
  })
})
