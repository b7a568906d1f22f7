import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { MemoryQuery, MemoryReader } from '../../../plugins/memory/contract.ts'
import { MAX_HITS } from '../../../plugins/memory/words/search.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { memoryOf, openStage } from './open-store.ts'
import type { MemoryStage } from './open-store.ts'

const operator: MemoryReader = { kind: 'operator' }
const PERSON = { kind: 'person', labels: [] } as const
const words = { embedding: { provider: 'none' } }

const finds = async (stage: MemoryStage, text: string, more: Partial<MemoryQuery> = {}): Promise<readonly string[]> => {
  const found = await stage.opened.memories.search({ text, limit: 10, reader: operator, ...more })
  return found.map(({ memory }) => memory.content)
}
/** How many memories the index has. */
const indexed = async ({ db }: MemoryStage): Promise<number> =>
  Number((await db.one<{ count: number }>`SELECT COUNT(*) AS count FROM memory_text`)?.count)

describe.each(['SQLite', 'PostgreSQL'])('the index of words on %s', (engine) => {
  const open = async (
    settings: object = words,
    grants: Record<string, [string[], string[]]> = {},
  ): Promise<MemoryStage> => {
    if (engine === 'SQLite') return openStage(settings, { grants })
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return openStage(settings, { url: database.url, grants })
  }

  it('follows what is added, changed, superseded and forgotten', async () => {
    const stage = await open()
    const { memories } = stage.opened
    const [first] = await memories.add([memoryOf('a', 'The wallpaper is green', { idempotencyKey: 'k' })])
    const id = first?.id ?? ''
    expect(await finds(stage, 'wallpaper')).toEqual(['The wallpaper is green'])
    await memories.update(id, 'The curtain is green', 'a person', PERSON)
    // The same write again is no second memory, and brings no words of before back.
    await memories.add([memoryOf('a', 'The wallpaper is green', { idempotencyKey: 'k' })])
    expect(await finds(stage, 'wallpaper')).toEqual([])
    expect(await finds(stage, 'curtain')).toEqual(['The curtain is green'])
    await memories.add([memoryOf('a', 'The carpet is blue', { supersedes: id })])
    expect(await finds(stage, 'curtain')).toEqual([])
    expect(await indexed(stage)).toBe(1)
    const [newest] = await stage.opened.memories.search({ text: 'carpet', limit: 1, reader: operator })
    await memories.forget([newest?.memory.id ?? ''], 'a person')
    expect(await indexed(stage)).toBe(0)
    expect(await finds(stage, 'carpet')).toEqual([])
  })

  it('takes words for the same as one, and a question in English for unanswered whose rare words are nowhere', async () => {
    const stage = await open()
    const boxes = 'The boxes were made by Hakoya'
    const callum = 'Callum shares the flat with Sanj'
    const club = 'Anna joined the chess club in Graz'
    const audit = 'The auditor is Priya, who wrote the report'
    await stage.opened.memories.add([boxes, callum, club, audit].map((content) => memoryOf('a', content)))
    expect(await finds(stage, 'Who made them?')).toEqual([boxes])
    expect(await finds(stage, 'Who makes them?')).toEqual([boxes])
    expect(await finds(stage, 'Who audits us?')).toEqual([audit])
    expect(await finds(stage, 'Who is the author?')).toEqual([audit])
    expect(await finds(stage, 'In which town is the chess club?')).toEqual([club])
    expect(await finds(stage, "What is Callum's surname?")).toEqual([])
    expect(await finds(stage, 'Which football club do I support?')).toEqual([])
    // What is no question in English may have half of its words.
    expect(await finds(stage, 'Callum surname')).toEqual([callum])
    expect(await finds(stage, 'Wie alt ist Callum?')).toEqual([callum])
  })

  it('gets the memories of an older version in the background, and nothing is lost until then', async () => {
    const stage = await open()
    const { memories, wordIndex } = stage.opened
    await memories.add([
      memoryOf('a', 'The wallpaper is green'),
      memoryOf('a', 'The wallpaper is old', { key: 'hall', tags: ['x'] }),
    ])
    await stage.db.run`DELETE FROM memory_text`
    await stage.db.run`UPDATE memory_entry SET has_words = 0`
    expect(await finds(stage, 'wallpaper')).toEqual([])
    await wordIndex.fillLater()
    await wordIndex.fillLater()
    const jobs = await stage.db.all`SELECT id FROM queue_job WHERE lane = 'memory-words'`
    expect(jobs).toHaveLength(1)
    expect(await wordIndex.fill(AbortSignal.timeout(60_000))).toEqual({ outcome: 'done' })
    expect(await finds(stage, 'wallpaper')).toHaveLength(2)
    expect(await finds(stage, 'hall wallpaper', { tags: ['x'] })).toEqual(['The wallpaper is old'])
    expect(await stage.db.all`SELECT id FROM memory_entry WHERE has_words = 0`).toEqual([])
  })

  it('finds an old memory by two common words, though a thousand newer ones have each', async () => {
    const stage = await open({ ...words, max_memories_per_agent: 10_000 })
    const { memories } = stage.opened
    await memories.add([memoryOf('a', 'Ann painted the fence of the garden')])
    const newer = (text: string) => Array.from({ length: MAX_HITS }, (_, at) => memoryOf('a', `${text} day${at}`))
    await memories.add([...newer('fence'), ...newer('garden'), ...newer('paint')])
    expect((await finds(stage, 'garden fence'))[0]).toBe('Ann painted the fence of the garden')
    expect((await finds(stage, 'painted garden fence'))[0]).toBe('Ann painted the fence of the garden')
    expect(await finds(stage, 'Ann', { until: '2999-01-01T00:00:00.000Z' })).toHaveLength(1)
    expect(await finds(stage, 'Ann', { since: '2999-01-01T00:00:00.000Z' })).toEqual([])
  })

  it('finds an old memory by two words that most have, though the newer half has them never together', async () => {
    const stage = await open({ ...words, max_memories_per_agent: 10_000 })
    const texts = Array.from({ length: 3_000 }, (_, at) =>
      [at < 1_700 ? 'fence' : '', at < 320 || at >= 1_700 ? 'garden' : '', `day${at}`].join(' '),
    )
    await stage.opened.memories.add(texts.map((text) => memoryOf('a', text)))
    for (let asked = 0; asked < 2; asked++)
      expect((await finds(stage, 'garden fence')).every((text) => text.startsWith('fence garden'))).toBe(true)
    expect(await finds(stage, 'garden fence')).toHaveLength(10)
  })

  it.each([1_500, 2_000])('finds what an agent has, though another has %s newer ones with the word', async (others) => {
    const stage = await open({ ...words, max_memories_per_agent: 10_000 })
    const { memories } = stage.opened
    const own = (text: string, more = {}) => memoryOf('a', text, more)
    const [first] = await memories.add([own('Ann painted the fence'), own('of bob fence', { userId: 'bob' })])
    await memories.add(Array.from({ length: 2_100 }, (_, at) => own(`garden day${at}`)))
    await memories.add(Array.from({ length: others }, (_, at) => memoryOf('b', `fence day${at}`)))
    const asA = { reader: { kind: 'agent', agentId: 'a' } } as const
    expect(await finds(stage, 'fence', asA)).toEqual(['Ann painted the fence'])
    expect(await finds(stage, 'garden', asA)).toHaveLength(10)
    expect(await finds(stage, 'garden', { reader: { kind: 'agent', agentId: 'b' } })).toEqual([])
    // What is added, changed and forgotten after a search is known to the next one.
    await memories.add([own('Ann sold the fence')])
    await memories.update(first?.id ?? '', 'Ann painted the wall', 'a person', PERSON)
    expect(await finds(stage, 'fence', asA)).toEqual(['Ann sold the fence'])
    expect(await finds(stage, 'wall', asA)).toEqual(['Ann painted the wall'])
    await memories.forget([first?.id ?? ''], 'a person')
    expect(await finds(stage, 'wall', asA)).toEqual([])
  })

  it('takes no word of a question for an operator or a mark', async () => {
    const stage = await open()
    await stage.opened.memories.add([memoryOf('a', `AND "or" NOT (near) col:x* it's \\ 'quoted' & | ! <->`)])
    for (const text of ['and', 'NOT', '"near"', 'col:x', "quoted'", '\\', '_level', 'x*', '& | !', '(', "'", '"', '🙂'])
      expect([text, (await finds(stage, text)).length <= 1]).toEqual([text, true])
    expect(await finds(stage, 'near quoted col')).toHaveLength(1)
  })

  it('finds words of scripts without blanks, and a text without any word', async () => {
    const stage = await open()
    await stage.opened.memories.add([
      memoryOf('a', '東京に住んでいます'),
      memoryOf('a', 'ชอบกาแฟ'),
      memoryOf('a', '…'),
      memoryOf('a', 'Café in Zürich'),
    ])
    expect(await finds(stage, '東京')).toEqual(['東京に住んでいます'])
    expect(await finds(stage, 'กาแฟ')).toEqual(['ชอบกาแฟ'])
    expect(await finds(stage, 'cafe zurich')).toEqual(['Café in Zürich'])
    expect(await indexed(stage)).toBe(4)
  })

  it('shows an agent what many share with it, and no other agent', async () => {
    const names = Array.from({ length: 70 }, (_, at) => `n${at}`)
    const grants = Object.fromEntries(
      names.map((name): [string, [string[], string[]]] => [name, [['self.*'], ['self.*', 'shared.agent']]]),
    )
    const stage = await open(words, {
      ...grants,
      reader: [['self.*', '*.agent'], ['self.*']],
      z: [['self.*'], ['self.*']],
    })
    await stage.opened.memories.add([...names, 'z'].map((name) => memoryOf(name, `secret of ${name}`)))
    const reader: MemoryReader = { kind: 'agent', agentId: 'reader' }
    expect(await finds(stage, 'secret', { reader, limit: 100 })).not.toContain('secret of z')
    for (const name of ['n0', 'n69'])
      expect(await finds(stage, `secret ${name}`, { reader })).toContain(`secret of ${name}`)
    expect(await finds(stage, 'secret z', { reader, limit: 100 })).not.toContain('secret of z')
  })

  it('goes with many that are forgotten', async () => {
    const stage = await open()
    const { memories } = stage.opened
    const many = await memories.add(Array.from({ length: 130 }, (_, at) => memoryOf('a', `number ${at}`)))
    expect(
      await memories.forget(
        many.slice(0, 60).map(({ id }) => id),
        'a person',
      ),
    ).toMatchObject({ deleted: 60 })
    expect(await finds(stage, 'number 59')).not.toContain('number 59')
    await stage.opened.removal.finish()
    expect(await indexed(stage)).toBe(70)
  })
})

it('what is forgotten leaves no word in the file or its log', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-words-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const file = join(home, 'svc.db')
  const stage = await openStage(words, { url: `sqlite:${file}` })
  const { memories } = stage.opened
  const bytes = async (): Promise<string> => {
    // What an earlier commit wrote leaves the log when that is moved into the file.
    const other = new Sqlite(file)
    other.pragma('wal_checkpoint(TRUNCATE)')
    other.close()
    return (await Promise.all([file, `${file}-wal`].map((name) => readFile(name, 'latin1').catch(() => '')))).join('')
  }
  for (let at = 0; at < 40; at++) await memories.add([memoryOf('a', `the others remain ${at}`)])
  const [secret] = await memories.add([memoryOf('a', 'qwxaubergine qyxrhubarb')])
  const [changed] = await memories.add([memoryOf('a', 'zqzparsnip')])
  expect(await bytes()).toMatch(/qwxaubergin[\s\S]*zqzparsnip/)
  await memories.update(changed?.id ?? '', 'harmless', 'a person', PERSON)
  await memories.forget([secret?.id ?? '', changed?.id ?? ''], 'a person')
  expect(await bytes()).not.toMatch(/aubergin|rhubarb|parsnip/)
  expect(await bytes()).toContain('others remain')
})
