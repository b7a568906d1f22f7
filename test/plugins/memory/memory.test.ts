import Database from 'better-sqlite3'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { callTool } from '../plugin-test.ts'

const start = (more: Partial<PluginTestOptions> = {}): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/memory/', import.meta.url),
    builtIns: ['audit', 'agents', 'cluster', 'queue', 'providers', 'builtin', 'usage'],
    ...more,
  })
const store = (test: PluginTest, agent: string, key: string, value: string) =>
  callTool(test, agent, 'memory_store', { key, value })
const recall = async (
  test: PluginTest,
  agent: string,
  key: string,
): Promise<{ key: string; value: string; created_at: string }[]> =>
  JSON.parse((await callTool(test, agent, 'memory_recall', { key })).text)

describe('a note', () => {
  it('is recalled by its key', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    expect(await store(test, agent, 'birthday', 'the third of May')).toEqual({
      text: 'Remembered under "birthday".',
      failed: false,
    })
    expect(await recall(test, agent, 'birthday')).toEqual([
      { key: 'birthday', value: 'the third of May', created_at: expect.stringMatching(/Z$/) },
    ])
  })

  it('is found by a part of its key or value, whatever the case, in any script', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await store(test, agent, 'favourite colour', 'GRÜN')
    await store(test, agent, 'favourite food', 'Käse_50%')
    expect((await recall(test, agent, 'FAVOURITE')).map((note) => note.key).sort()).toEqual([
      'favourite colour',
      'favourite food',
    ])
    expect((await recall(test, agent, 'grün')).map((note) => note.key)).toEqual(['favourite colour'])
    expect((await recall(test, agent, '_50%')).map((note) => note.key)).toEqual(['favourite food'])
    expect(await callTool(test, agent, 'memory_recall', { key: 'nothing' })).toEqual({
      text: 'No note found for "nothing".',
      failed: false,
    })
  })

  it('of the exact key comes alone', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await store(test, agent, 'cat', 'Tom')
    await store(test, agent, 'cats', 'Tom and Kit')
    expect(await recall(test, agent, 'cat')).toHaveLength(1)
  })

  it('is replaced under its key and keeps the time it was made', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await store(test, agent, 'k', 'old')
    const [before] = await recall(test, agent, 'k')
    await store(test, agent, 'k', 'new')
    expect(await recall(test, agent, 'k')).toEqual([{ ...before, value: 'new' }])
  })

  it('survives a restart', async () => {
    await using test = await start({ database: 'file' })
    const agent = await test.spawn('a')
    await store(test, agent, 'k', 'v')
    await test.restart()
    expect(await recall(test, agent, 'k')).toHaveLength(1)
  })

  it('of an older version is found again after the start with this one', async () => {
    await using test = await start({ database: 'file' })
    const agent = await test.spawn('a')
    await store(test, agent, 'k', 'The wallpaper is green')
    const search = async () => (await callTool(test, agent, 'memory_search', { query: 'wallpaper' })).text
    expect(await search()).toContain('green')
    await test.restart(() => {
      const database = new Database(join(test.home, 'data', 'svc.db'))
      database.exec('DELETE FROM memory_text; DELETE FROM memory_vector; UPDATE memory_entry SET has_words = 0')
      database.close()
    })
    await eventually(async () => expect(await search()).toContain('green'))
  })

  it('belongs to one agent', async () => {
    await using test = await start()
    const [one, two] = [await test.spawn('one', '[capabilities]\nmemory_read = ["*"]'), await test.spawn('two')]
    await store(test, two, 'secret', 'x')
    expect((await callTool(test, one, 'memory_recall', { key: 'secret' })).text).toContain('No note found')
    expect(JSON.parse((await callTool(test, one, 'memory_list', {})).text)).toEqual({ notes: [], total: 0 })
  })

  it('is in the audit log without its text', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    await store(test, agent, 'diary', 'very private')
    const { entries } = (await test.request<Json>('GET', '/api/audit/recent')).body
    expect(entries).toContainEqual(
      expect.objectContaining({
        event_type: 'memory_access',
        agent_id: agent,
        details: expect.stringContaining('"diary"'),
      }),
    )
    expect(JSON.stringify(entries)).not.toContain('very private')
  })
})

describe('the list', () => {
  it('is paged, with the total', async () => {
    await using test = await start()
    const agent = await test.spawn('a')
    for (const key of ['a', 'b', 'c']) await store(test, agent, key, key)
    const list = async (args: unknown) => JSON.parse((await callTool(test, agent, 'memory_list', args)).text)
    const all = await list({})
    expect(all.total).toBe(3)
    expect(all.notes.map((note: { key: string }) => note.key).sort()).toEqual(['a', 'b', 'c'])
    expect(all.notes[0]).toEqual({ key: expect.any(String), value: expect.any(String), created_at: expect.any(String) })
    expect((await list({ limit: 2 })).notes).toEqual(all.notes.slice(0, 2))
    expect((await list({ limit: 2, offset: 2 })).notes).toEqual(all.notes.slice(2))
    expect((await callTool(test, agent, 'memory_list', { limit: 0 })).failed).toBe(true)
  })
})

describe('limits and rights', () => {
  it('memory_read and memory_write of the manifest are respected', async () => {
    await using test = await start()
    const agent = await test.spawn('a', '[capabilities]\nmemory_read = ["self.a*"]\nmemory_write = ["self.*"]')
    await store(test, agent, 'apple', 'one')
    await store(test, agent, 'banana', 'an apple is not')
    expect((await recall(test, agent, 'apple')).map((note) => note.key)).toEqual(['apple'])
    expect((await callTool(test, agent, 'memory_recall', { key: 'is not' })).text).toContain('No note found')
    expect(await callTool(test, agent, 'memory_recall', { key: 'banana' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_read'),
    })
    expect(
      JSON.parse((await callTool(test, agent, 'memory_list', {})).text).notes.map((note: { key: string }) => note.key),
    ).toEqual(['apple'])
    const mute = await test.spawn('mute', '[capabilities]\nmemory_write = []')
    expect(await store(test, mute, 'x', 'y')).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_write'),
    })
  })

  it('the number of notes is limited, and replacing goes on', async () => {
    await using test = await start({
      config: { plugins: { memory: { max_notes_per_agent: 3, max_value_chars: 10, max_key_chars: 5 } } },
    })
    const agent = await test.spawn('a')
    const outcomes = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => store(test, agent, key, '1')))
    expect(outcomes.filter((outcome) => !outcome.failed)).toHaveLength(3)
    const [kept] = JSON.parse((await callTool(test, agent, 'memory_list', {})).text).notes
    expect((await store(test, agent, kept.key, '2')).failed).toBe(false)
    expect((await store(test, agent, kept.key, 'x'.repeat(11))).failed).toBe(true)
    expect((await store(test, agent, 'k'.repeat(6), 'x')).failed).toBe(true)
    expect((await store(test, agent, kept.key, 'a\0b')).failed).toBe(true)
  })
})

describe('memory_search and memory_forget', () => {
  it('reach what is for the agent and the person, and what both manifests share', async () => {
    await using test = await start()
    const rights = (read: string, write: string): string =>
      `[capabilities]\nmemory_read = ["self.*", "${read}"]\nmemory_write = ["self.*", "${write}"]`
    const one = await test.spawn('one', rights('two.agent', 'none'))
    const two = await test.spawn('two', rights('none', 'shared.agent'))
    const three = await test.spawn('three')
    const add = (agent_id: string, content: string, user_id?: string) =>
      test.request<Json>('POST', '/api/memory', { agent_id, content, user_id })
    for (const [agent, name] of [
      [one, 'one'],
      [two, 'two'],
      [three, 'three'],
    ] as const)
      await add(agent, `the treasure of ${name} is gold`)
    await add(one, 'the treasure of ann is silver', 'ann')
    const found = async (agent: string): Promise<{ id: string; content: string }[]> => {
      const { text } = await callTool(test, agent, 'memory_search', { query: 'treasure' })
      return text.startsWith('[') ? JSON.parse(text) : []
    }
    const contents = async (agent: string) => (await found(agent)).map(({ content }) => content).sort()
    expect(await contents(one)).toEqual(['the treasure of one is gold', 'the treasure of two is gold'])
    expect(await contents(two)).toEqual(['the treasure of two is gold'])
    expect(await contents(three)).toEqual(['the treasure of three is gold'])
    // What is shared may be read, and not deleted.
    const ids = (await found(one)).map(({ id }) => id)
    expect(JSON.parse((await callTool(test, one, 'memory_forget', { ids })).text)).toMatchObject({ deleted: 1 })
    expect(await contents(one)).toEqual(['the treasure of two is gold'])
  })
})

it('a hostile agent gets nothing of others by any tool, and every bad input is refused with its reason', async () => {
  await using test = await start()
  const [hostile, other] = [
    await test.spawn('hostile', '[capabilities]\nmemory_read = ["*"]\nmemory_write = ["*"]'),
    await test.spawn('other'),
  ]
  await store(test, other, 'plan', 'The treasure is in Graz')
  const { body } = await test.request<Json>('POST', '/api/memory', { agent_id: other, content: 'The treasure is gold' })
  const theirs: string = body.memories[0].id
  for (const key of ['__proto__', 'constructor', '../other/plan', `${other} plan`, '%', "' OR 1=1 --"]) {
    expect(await store(test, hostile, key, 'mine')).toEqual({ text: `Remembered under "${key}".`, failed: false })
    expect((await recall(test, hostile, key)).map((note) => note.value)).toEqual(['mine'])
  }
  for (const [tool, args, said] of [
    ['memory_store', { key: '', value: 'x' }, 'key'],
    ['memory_store', { key: 'k' }, 'value'],
    ['memory_store', { key: 'k', value: { a: 1 } }, 'value'],
    ['memory_store', { key: 'k\0', value: 'x' }, 'NUL'],
    ['memory_store', { key: 'k', value: 'a\uD800' }, 'Unicode'],
    ['memory_store', { key: 'k'.repeat(513), value: 'x' }, 'max_key_chars'],
    ['memory_store', { key: 'k', value: 'x'.repeat(16_385) }, 'max_value_chars'],
    ['memory_recall', { key: '' }, 'key'],
    ['memory_list', { limit: 101 }, 'limit'],
    ['memory_list', { offset: -1 }, 'offset'],
    ['memory_search', { query: '' }, 'query'],
    ['memory_search', { query: 'x'.repeat(2_001) }, 'query'],
    ['memory_search', { query: 'x', limit: 51 }, 'limit'],
    ['memory_forget', { ids: [] }, 'ids'],
    ['memory_forget', { ids: Array.from({ length: 101 }, (_, id) => `${id}`) }, 'ids'],
    ['memory_forget', { ids: 'all' }, 'ids'],
  ] as const)
    expect([tool, await callTool(test, hostile, tool, args)]).toEqual([
      tool,
      { failed: true, text: expect.stringContaining(said) },
    ])
  for (const query of ['treasure', 'treasure OR *', '"', 'NEAR(treasure)', '*'])
    expect((await callTool(test, hostile, 'memory_search', { query })).text).not.toMatch(/Graz|gold/)
  expect((await callTool(test, hostile, 'memory_recall', { key: 'plan' })).text).not.toContain('Graz')
  expect(
    JSON.parse((await callTool(test, hostile, 'memory_forget', { ids: [theirs, theirs, '%', '__proto__'] })).text),
  ).toEqual({
    deleted: 0,
    not_found: [theirs, theirs, '%', '__proto__'],
  })
  expect((await test.request<Json>('GET', `/api/memory/agents/${other}`)).body.total).toBe(2)
})
