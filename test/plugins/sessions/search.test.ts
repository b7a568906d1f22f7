import { describe, expect, it } from 'vitest'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import { migrations } from '../../../plugins/sessions/migrations.ts'
import { searchMessages } from '../../../plugins/sessions/search/search.ts'
import { SearchStore } from '../../../plugins/sessions/search/store.ts'
import { SessionStore } from '../../../plugins/sessions/store.ts'

type Said = readonly [turnId: string, role: 'user' | 'assistant' | 'tool', text: string, at: string]
async function say(db: PluginDatabase, session: string, agent: string, said: readonly Said[]): Promise<void> {
  const store = new SessionStore(db, recorder().log)
  await store.commit([store.insert(session, agent, `label of ${session}`, '2026-01-01T00:00:00.000Z')])
  for (const [index, [turnId, role, text, createdAt]] of said.entries()) {
    const block =
      role === 'tool'
        ? { type: 'result' as const, callId: 'c', tool: 't', text, failed: false, labels: [] }
        : { type: 'text' as const, text }
    const message = { id: `${session}-${index}`, turnId, role, createdAt, blocks: [block] }
    await store.commit(store.append(session, message, true))
  }
}

describe.each(engines)('on %s', (engine) => {
  it('messages that have all words are found, newest first, page by page', async () => {
    const { database } = await open(engine)
    await database.migrate('sessions', migrations)
    const db = database.sql
    await say(db, 's1', 'ada', [
      ['f1', 'user', 'Where is my BOAT, please?', '2025-03-01T10:00:00.000Z'],
      ['02', 'assistant', 'The boat "Möwe" lies in Kiel.', '2026-05-01T10:00:00.000Z'],
      ['03', 'tool', 'boat kiel', '2026-06-01T10:00:00.000Z'],
      ['04', 'user', 'A type of text, and a goat.', '2026-07-01T10:00:00.000Z'],
    ])
    await say(db, 's2', 'eve', [
      ['05', 'user', `${'x '.repeat(200)}boats in KIEL ${'y '.repeat(200)}`, '2026-08-01T10:00:00.000Z'],
    ])
    const store = new SearchStore(db)
    const search = (text: string, more: object = {}) =>
      searchMessages(store, {
        text,
        limit: 10,
        page: 2,
        maxMessages: 100,
        signal: new AbortController().signal,
        ...more,
      })
    const ids = async (text: string, more: object = {}) =>
      (await search(text, more)).found.map(({ messageId }) => messageId)
    expect(await ids('boat')).toEqual(['s2-0', 's1-1', 's1-0'])
    expect(await ids('kiel BOAT')).toEqual(['s2-0', 's1-1'])
    expect(await ids('MÖWE')).toEqual(['s1-1'])
    expect(await ids('boat', { agentId: 'ada', limit: 1 })).toEqual(['s1-1'])
    // The names of fields in what is stored are no words that somebody said.
    expect(await ids('blocks')).toEqual([])
    expect(await ids('type')).toEqual(['s1-3'])
    expect((await search('boat')).isComplete).toBe(true)
    expect(await search('boat', { maxMessages: 2 })).toMatchObject({ isComplete: false })
    // Who has left waits for no more pages.
    await expect(search('boat', { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
    const [found] = (await search('boats')).found
    expect(found).toMatchObject({ sessionId: 's2', agentId: 'eve', label: 'label of s2', role: 'user' })
    expect(found?.snippet).toMatch(/^…(x )+boats in KIEL( y)+…$/)
    await expect(search('…?!')).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
