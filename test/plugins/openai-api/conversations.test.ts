import { describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import { engines, open } from '../../core/storage/engines.ts'
import { migrations } from '../../../plugins/openai-api/migrations.ts'
import { ConversationStore } from '../../../plugins/openai-api/store.ts'

describe.each(engines)('which session holds which conversation, on %s', (engine) => {
  const at = '2026-01-01T00:00:00.000Z'
  const store = async (): Promise<ConversationStore> => {
    const { database } = await open(engine)
    await database.migrate('openai-api', migrations)
    return new ConversationStore(database.sql)
  }
  it('is given to one of those who ask for it', async () => {
    const conversations = await store()
    await conversations.commit([conversations.insert('s1', 'a', at)])
    expect(await conversations.claim('a', 'd1', at)).toBeUndefined()
    await conversations.settle('s1', 'd1', at)
    expect(await conversations.claim('other', 'd1', at)).toBeUndefined()
    const claims = await Promise.all(Array.from({ length: 8 }, () => conversations.claim('a', 'd1', at)))
    expect(claims.filter((id) => id !== undefined)).toEqual(['s1'])
  })
  it('is forgotten when nobody went on with it', async () => {
    const conversations = await store()
    await conversations.commit([
      conversations.insert('old', 'a', '2025-01-01T00:00:00.000Z'),
      conversations.insert('new', 'a', at),
    ])
    expect(await conversations.unused('2025-06-01T00:00:00.000Z', 10)).toEqual([{ session_id: 'old', agent_id: 'a' }])
    await conversations.forget('old')
    expect(await conversations.unused('2026-06-01T00:00:00.000Z', 10)).toEqual([{ session_id: 'new', agent_id: 'a' }])
  })
})

it('the sessions of old conversations are removed, those of the agent are not', async () => {
  await using stage = await openChat()
  const { Conversations } = await import('../../../plugins/openai-api/conversations.ts')
  const post = (messages: unknown[]) =>
    stage.host.json('POST', '/v1/chat/completions', { model: 'assistant', messages })
  await post([{ role: 'user', content: 'hello' }])
  await post([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'hello' },
  ])
  const sessions = async () =>
    (await stage.host.json('GET', `/api/agents/${stage.agent}/sessions`)).body.sessions as {
      id: string
      active: boolean
    }[]
  const before = await sessions()
  expect(before).toHaveLength(2)
  const conversation = before.find(({ active }) => !active)
  const removed: string[] = []
  const waiting = [{ session_id: conversation?.id ?? '', agent_id: stage.agent }]
  const conversations = new Conversations({
    store: {
      unused: async () => waiting.splice(0),
      forget: async (id: string) => {
        removed.push(id)
      },
    } as unknown as ConversationStore,
    sessions: {
      find: async () => ({ id: conversation?.id }),
      remove: async ({ id }: { id: string }) => {
        await stage.host.json('DELETE', `/api/sessions/${id}`)
      },
    } as never,
    now: () => '',
  })
  await conversations.cleanup('2100-01-01T00:00:00.000Z')
  expect(removed).toEqual([conversation?.id])
  expect(await sessions()).toHaveLength(1)
  // A client that goes on with it later gets a new session made of what it sends.
  expect(
    (
      await post([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: 'Hello from the fake.' },
        { role: 'user', content: 'and now?' },
      ])
    ).status,
  ).toBe(200)
  expect(await sessions()).toHaveLength(2)
})
