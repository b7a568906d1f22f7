import { describe, expect, it } from 'vitest'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import type { Block, Message, Summary } from '../../../plugins/sessions/contract.ts'
import { migrations } from '../../../plugins/sessions/migrations.ts'
import { SessionService } from '../../../plugins/sessions/service.ts'
import { SessionStore } from '../../../plugins/sessions/store.ts'
import { SummaryStore } from '../../../plugins/sessions/summary/store.ts'

function partsOf(db: PluginDatabase) {
  const nobody = (): never => {
    throw new Error('not in this test')
  }
  return {
    summaries: new SummaryStore(db, recorder().log),
    now: () => new Date().toISOString(),
    audit: {
      entry: () => db.sql`UPDATE sessions_session SET label = label WHERE id = ''`,
      write: nobody,
      entries: nobody,
    },
    hooks: { on: nobody, emit: nobody, check: nobody, apply: nobody },
    agents: {
      find: nobody,
      findByName: nobody,
      require: nobody,
      list: nobody,
      summaries: nobody,
      spawn: nobody,
      kill: nobody,
      activate: nobody,
    } as never,
  }
}
async function start(engine: EngineName) {
  const { database } = await open(engine)
  await database.migrate('sessions', migrations)
  const store = new SessionStore(database.sql, recorder().log)
  const sessions = new SessionService({ ...partsOf(database.sql), store })
  let n = 0
  const opened = new Set<string>()
  async function say(
    turnId: string,
    role: Message['role'],
    blocks: readonly Block[] | string = `m${n}`,
    session = 's',
  ): Promise<string> {
    const id = `m${n++}`
    const opens = !opened.has(`${session} ${turnId}`)
    opened.add(`${session} ${turnId}`)
    await store.commit(
      sessions.append(
        session,
        {
          id,
          turnId,
          role,
          createdAt: '2026-01-01T00:00:00.000Z',
          blocks: typeof blocks === 'string' ? [{ type: 'text', text: blocks }] : blocks,
        },
        { opens },
      ),
    )
    return id
  }
  await store.commit(sessions.ensure('s', 'agent'))
  return { sessions, store, say, db: database.sql }
}
const texts = (messages: readonly Message[]): string[] =>
  messages.map(({ blocks }) => blocks.map((block) => (block.type === 'text' ? block.text : block.type)).join())

describe.each(engines)('sessions on %s', (engine) => {
  it('making one twice is making it once', async () => {
    const { sessions, store } = await start(engine)
    await store.commit(sessions.ensure('s', 'agent'))
    expect(await sessions.find('s')).toMatchObject({ id: 's', agentId: 'agent', messageCount: 0, label: null })
    expect(await sessions.list('agent')).toHaveLength(1)
    expect(await sessions.list('other')).toEqual([])
  })

  it('the messages of a turn stand together however many turns were queued meanwhile', async () => {
    const { sessions, say } = await start(engine)
    await say('t1', 'user', 'q1')
    await say('t2', 'user', 'q2')
    await say('t3', 'user', 'q3')
    await say('t1', 'assistant', 'a1')
    await say('t2', 'assistant', 'a2')
    expect(texts(await sessions.page('s', { limit: 10 }))).toEqual(['q1', 'a1', 'q2', 'a2', 'q3'])
    expect((await sessions.find('s'))?.messageCount).toBe(5)
  })

  it('a turn sees what came before it and nothing that was accepted after it', async () => {
    const { sessions, say } = await start(engine)
    await say('t1', 'user', 'q1')
    await say('t2', 'user', 'q2')
    await say('t1', 'assistant', 'a1')
    expect(texts(await sessions.tail('s', 't1', 10))).toEqual(['q1', 'a1'])
    expect(texts(await sessions.tail('s', 't2', 10))).toEqual(['q1', 'a1', 'q2'])
    expect(await sessions.tail('s', 'ghost', 10)).toEqual([])
  })

  it('the tail is what is stored, whatever was written, refused, cleared or changed elsewhere since', async () => {
    const { sessions, store, say, db } = await start(engine)
    const fresh = () => new SessionService({ ...partsOf(db), store: new SessionStore(db, recorder().log) })
    const same = async (turnId: string, limit = 6): Promise<void> => {
      expect(await sessions.tail('s', turnId, limit)).toEqual(await fresh().tail('s', turnId, limit))
      expect(await sessions.uncovered('s', { limit, before: turnId })).toEqual(
        await fresh().uncovered('s', { limit, before: turnId }),
      )
    }
    for (let n = 1; n <= 9; n++) {
      await say(`t${n}`, 'user', `q${n}`)
      await same(`t${n}`)
      await say(`t${n}`, 'assistant', [{ type: 'call', id: 'c', tool: 'look', args: { n } }])
      await say(`t${n}`, 'tool', [{ type: 'result', callId: 'c', tool: 'look', text: 'x', failed: false }])
      await same(`t${n}`)
      await say(`t${n}`, 'assistant', `a${n}`)
    }
    // Handed out and never written.
    sessions.append('s', { id: 'lost', turnId: 't10', role: 'user', createdAt: '2026-01-01T00:00:00.000Z', blocks: [] })
    await say('t10', 'user', 'q10')
    await say('t11', 'user', 'q11')
    await same('t10')
    await same('t11')
    await say('t10', 'assistant', 'a10')
    await same('t11')
    expect(texts(await sessions.tail('s', 't11', 3))).toEqual(['q10', 'a10', 'q11'])
    // Another process on the same database; the file of SQLite has one at a time.
    await db.batch(
      (engine === 'postgresql' ? fresh() : sessions).append('s', {
        id: 'other',
        turnId: 't11',
        role: 'assistant',
        createdAt: '2026-01-01T00:00:00.000Z',
        blocks: [{ type: 'text', text: 'a11' }],
      }),
    )
    await same('t11')
    // Looked at between the order to clear and its execution.
    const clearing = store.clear('s')
    await same('t11')
    await store.commit(clearing)
    expect(await sessions.tail('s', 't11', 5)).toEqual([])
    await say('t12', 'user', 'q12')
    await same('t12')
    await store.commit(store.remove('s'))
    await store.commit(sessions.ensure('s', 'agent'))
    await say('t13', 'user', 'q13')
    expect(texts(await sessions.tail('s', 't13', 5))).toEqual(['q13'])
    // A turn whose first message nobody announced.
    await store.commit(
      sessions.append('s', {
        id: 'u1',
        turnId: 't14',
        role: 'user',
        createdAt: '2026-01-01T00:00:00.000Z',
        blocks: [],
      }),
    )
    await store.commit(
      sessions.append('s', {
        id: 'u2',
        turnId: 't14',
        role: 'assistant',
        createdAt: '2026-01-01T00:00:00.000Z',
        blocks: [],
      }),
    )
    await same('t14', 3)
    expect((await sessions.tail('s', 't14', 9)).map(({ id }) => id)).toEqual([expect.any(String), 'u1', 'u2'])
  })

  it('the tail is cut to begin with the user, and never cuts the turn itself', async () => {
    const { sessions, say } = await start(engine)
    for (let n = 1; n <= 3; n++) {
      await say(`t${n}`, 'user', `q${n}`)
      await say(`t${n}`, 'assistant', `a${n}`)
    }
    await say('t4', 'user', 'q4')
    expect(texts(await sessions.tail('s', 't4', 4))).toEqual(['q3', 'a3', 'q4'])
    expect(texts(await sessions.tail('s', 't4', 1))).toEqual(['q4'])
    for (let n = 0; n < 5; n++) await say('t4', n % 2 === 0 ? 'assistant' : 'tool', `step ${n}`)
    expect(texts(await sessions.tail('s', 't4', 3))).toEqual(['q4', 'step 0', 'step 1', 'step 2', 'step 3', 'step 4'])
  })

  it('pages back to the beginning without a gap, and never parts a call from its results', async () => {
    const { sessions, say } = await start(engine)
    for (let n = 1; n <= 4; n++) {
      await say(`t${n}`, 'user', `q${n}`)
      await say(`t${n}`, 'assistant', [{ type: 'call', id: 'c', tool: 'look', args: { n } }])
      await say(`t${n}`, 'tool', [{ type: 'result', callId: 'c', tool: 'look', text: 'x', failed: false }])
      await say(`t${n}`, 'assistant', `a${n}`)
    }
    const whole = await sessions.page('s', { limit: 100 })
    expect(whole).toHaveLength(16)
    const pages: Message[][] = []
    for (let before: string | undefined; ;) {
      const page = await sessions.page('s', { limit: 2, ...(before === undefined ? {} : { before }) })
      if (page.length === 0) break
      expect(page[0]?.role).not.toBe('tool')
      pages.unshift([...page])
      before = page[0]?.id
    }
    expect(pages.flat().map(({ id }) => id)).toEqual(whole.map(({ id }) => id))
    expect(await sessions.page('s', { limit: 2, before: 'ghost' })).toEqual([])
  })

  it('keeps every kind of block and mark as it was', async () => {
    const { sessions, store } = await start(engine)
    const blocks: Block[] = [
      { type: 'text', text: 'ünï \u0000 \ud83d\ude00 "quoted"\n' },
      { type: 'image', mime: 'image/png', base64: 'AAAA' },
      { type: 'call', id: 'c', tool: 't', args: { deep: [1, null, { __proto__x: 1 }] } },
      { type: 'result', callId: 'c', tool: 't', text: '', failed: true },
    ]
    await store.commit(
      sessions.append('s', {
        id: 'x',
        turnId: 't',
        role: 'assistant',
        blocks,
        createdAt: '2026-01-01T00:00:00.000Z',
        mark: 'cut',
      }),
    )
    expect(await sessions.turn('s', 't')).toEqual([
      { id: 'x', turnId: 't', role: 'assistant', blocks, createdAt: '2026-01-01T00:00:00.000Z', mark: 'cut' },
    ])
  })

  it('nothing is written to a session that is gone, and another keeps what it has', async () => {
    const { sessions, store, say } = await start(engine)
    await store.commit([...sessions.ensure('other', 'agent'), ...sessions.ensure('foreign', 'another')])
    await say('t1', 'user', 'here')
    await say('t2', 'user', 'there', 'other')
    await say('t3', 'user', 'elsewhere', 'foreign')
    await store.commit(store.remove('s'))
    await say('t1', 'assistant', 'too late')
    expect(await sessions.page('s', { limit: 10 })).toEqual([])
    expect(texts(await sessions.page('other', { limit: 10 }))).toEqual(['there'])
    await sessions.forget('agent')
    expect((await sessions.list()).map(({ id }) => id)).toEqual(['foreign'])
    expect(texts(await sessions.page('foreign', { limit: 10 }))).toEqual(['elsewhere'])
  })

  it('reads the tail of a long session through an index', async () => {
    const { db, sessions, say } = await start(engine)
    await say('t1', 'user', 'q')
    if (db.dialect === 'sqlite') {
      const plan = await db.all<{
        detail: string
      }>`EXPLAIN QUERY PLAN SELECT id FROM sessions_message WHERE session_id = ${'s'} AND turn_seq <= (
        SELECT m.turn_seq FROM sessions_message m WHERE m.turn_id = ${'t1'} LIMIT 1)
        ORDER BY turn_seq DESC, seq DESC LIMIT ${10}`
      expect(plan.map(({ detail }) => detail).join('; ')).not.toMatch(/SCAN|TEMP B-TREE/)
    }
    expect(await sessions.chars('s', 10)).toBe(17)
  })

  const summary = (id: string, lastMessageId: string, more: Partial<Summary> = {}): Summary => ({
    id,
    sessionId: 's',
    text: `summary ${id}`,
    labels: ['ExternalNetwork'],
    firstMessageId: 'm0',
    lastMessageId,
    messageCount: 2,
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  })
  it('a summary stands for what it covers, in turns and in what is left to summarise', async () => {
    const { sessions, say } = await start(engine)
    const ids: string[] = []
    for (let n = 1; n <= 4; n++) {
      ids.push(await say(`t${n}`, 'user', `q${n}`), await say(`t${n}`, 'assistant', `a${n}`))
    }
    await say('t5', 'user', 'q5')
    expect(await sessions.summarise(summary('one', ids[3] ?? ''), [])).toBe(true)
    expect(texts(await sessions.tail('s', 't5', 50)).slice(1)).toEqual(['q3', 'a3', 'q4', 'a4', 'q5'])
    const [note] = await sessions.tail('s', 't5', 50)
    expect(note).toMatchObject({
      id: 'one',
      role: 'user',
      blocks: [{ type: 'text', text: expect.stringContaining('summary one'), labels: ['ExternalNetwork'] }],
    })
    expect(await sessions.summary('s')).toEqual(summary('one', ids[3] ?? ''))
    const left = await sessions.uncovered('s', { limit: 50, before: 't5' })
    expect([texts(left.messages), left.total, left.rested]).toEqual([['q3', 'a3', 'q4', 'a4'], 4, 4])
    expect(texts((await sessions.uncovered('s', { limit: 2 })).messages)).toEqual(['a4', 'q5'])
    expect(texts(await sessions.page('s', { limit: 50 }))).toHaveLength(9)
  })

  it('a summary taken back gives way to the one before, and is remembered as such', async () => {
    const { sessions, say } = await start(engine)
    const ids: string[] = []
    for (let n = 1; n <= 4; n++) ids.push(await say(`t${n}`, 'user', `q${n}`))
    await sessions.summarise(summary('one', ids[0] ?? ''), [])
    await sessions.summarise(summary('two', ids[2] ?? ''), [])
    expect((await sessions.summary('s'))?.id).toBe('two')
    expect((await sessions.restore('s'))?.id).toBe('two')
    expect((await sessions.summary('s'))?.id).toBe('one')
    const left = await sessions.uncovered('s', { limit: 50 })
    expect([left.total, left.rested]).toEqual([3, 1])
    await sessions.restore('s')
    expect(await sessions.restore('s')).toBeUndefined()
    expect(texts(await sessions.tail('s', 't4', 50))).toEqual(['q1', 'q2', 'q3', 'q4'])
  })

  it('a summary of messages that are gone is not stored', async () => {
    const { sessions, say } = await start(engine)
    await say('t1', 'user', 'q1')
    expect(await sessions.summarise(summary('one', 'ghost'), [])).toBe(false)
    expect(await sessions.summary('s')).toBeUndefined()
  })

  it('sessions are found by label, and told by when they were written to last', async () => {
    const { sessions, say, store } = await start(engine)
    await store.commit([...sessions.ensure('older', 'agent'), store.setLabel('older', 'work')])
    await say('t1', 'user', 'q1')
    expect(await sessions.findByLabel('agent', 'work')).toMatchObject({ id: 'older', label: 'work' })
    expect(await sessions.findByLabel('other', 'work')).toBeUndefined()
    const rows = await store.byActivity()
    expect(rows.map(({ id }) => id)).toEqual(['older', 's'])
    await store.commit([
      ...sessions.ensure('old', 'agent', { at: '2025-01-01T00:00:00.000Z' }),
      ...sessions.append('old', {
        id: 'm',
        role: 'user',
        blocks: [],
        turnId: 't2',
        createdAt: '2026-01-01T00:00:00.000Z',
      }),
    ])
    expect((await store.byActivity())[2]).toMatchObject({ id: 'old', active_at: '2026-01-01T00:00:00.000Z' })
  })
})
