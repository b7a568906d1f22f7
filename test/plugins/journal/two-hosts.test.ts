import Sqlite from 'better-sqlite3'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ManualTimer } from '../../../core/jobs/manual-timer.ts'
import { openChat } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

const BEAT_MS = 10_000

it('a turn runs in one of two daemons on a database, and in the other once its own has died', async () => {
  await using folder = await temporaryFolder()
  await using fake = await startFakeProvider()
  const file = join(folder.path, 'shared.db')
  const start = async (home: string) => {
    const timer = new ManualTimer(0)
    const stage = await openChat({
      fake,
      home,
      config: { database_url: `sqlite:${file}` },
      jobTimer: (plugin) => (plugin === 'journal' ? timer : new ManualTimer(0)),
    })
    return { ...stage, timer, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
  }
  const homes = ['one', 'two'].map((name) => join(folder.path, name))
  const [first = '', second = ''] = homes
  for (const home of homes) await mkdir(home, { mode: 0o700 })
  await using one = await start(first)
  const stalled = { text: 'It began', fault: 'stall' } as const
  fake.script(stalled)
  const asked = one.post(`/api/agents/${one.agent}/message/stream`, { message: 'a long story' })
  await fake.request(0)
  const db = new Sqlite(file)
  const states = () => db.prepare('SELECT state, on_crash FROM journal_turn').all()
  // As a turn that came from a chat, which no client waits for.
  await expect.poll(states).toHaveLength(1)
  db.prepare(`UPDATE journal_turn SET on_crash = 'resume'`).run()

  // The secrets of a database are those of one key.
  for (const name of ['vault.key', 'audit.anchor']) await copyFile(join(first, name), join(second, name))
  await using two = await start(second)
  for (let beats = 0; beats < 6; beats++) for (const { timer } of [one, two]) await timer.advance(BEAT_MS)
  expect(fake.requests).toHaveLength(1)
  expect(states()).toEqual([{ state: 'running', on_crash: 'resume' }])

  // The first one stands still.
  fake.script({ text: 'I went on.' })
  for (let beats = 0; beats < 3; beats++) await two.timer.advance(BEAT_MS)
  await fake.request(1)
  await expect.poll(states).toEqual([{ state: 'done', on_crash: 'resume' }])
  expect(fake.requests).toHaveLength(2)
  db.close()
  await (await asked).body?.cancel()
})
