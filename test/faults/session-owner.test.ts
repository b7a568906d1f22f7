import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { byHand } from '../support/chat-stage.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { Json } from '../support/json.ts'
import { createTestDatabase } from '../support/postgres-server.ts'

const json = { 'content-type': 'application/json' }
const PATIENCE = { timeout: 60_000 }

it('a daemon that is paused for longer than its lease loses its session, and writes nothing of it when it goes on', async () => {
  await using database = await createTestDatabase()
  await using fake = await startFakeProvider()
  const folder = await mkdtemp(join(tmpdir(), 'svc-session-owner-'))
  const start = async (name: string) => {
    const home = join(folder, name)
    await mkdir(home, { mode: 0o700 })
    await writeFile(join(home, 'vault.key'), 'ab'.repeat(32), { mode: 0o600 })
    return startDaemon({
      home,
      env: {
        SVC_DATABASE_URL: database.url,
        SVC_DEFAULT_PROVIDER: 'openai',
        SVC_DEFAULT_MODEL: 'fake-1',
        SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
        SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
        SVC_PLUGINS__CLUSTER__LEASE_SECS: '5',
      },
    })
  }
  try {
    await using one = await start('one')
    await using two = await start('two')
    const post = (at: { readonly url: string }, path: string, message: string): Promise<Response> =>
      fetch(at.url + path, { method: 'POST', headers: json, body: JSON.stringify({ message }) })
    const agents = (await (await fetch(`${one.url}/api/agents`)).json()) as { id: string }[]
    const path = `/api/agents/${agents[0]?.id}/message`
    const words = byHand()
    fake.script({ text: words.text })
    const lost = post(one, `${path}/stream`, 'one').then((answer) => answer.text())
    await fake.request(0)
    words.say('It began')
    const members = await database.query('SELECT id FROM cluster_member')

    process.kill(one.pid, 'SIGSTOP')
    const states = (): Promise<string> => database.query('SELECT state FROM journal_turn ORDER BY created_at')
    await expect.poll(states, PATIENCE).toBe('interrupted')
    expect(await (await post(two, path, 'two')).json()).toMatchObject({ response: 'Hello from the fake.' })

    words.say(' and ended.')
    words.end()
    process.kill(one.pid, 'SIGCONT')
    // Its client is told, by an error or by the end of the line.
    expect(await lost.catch((error: unknown) => String(error))).not.toContain('"done":true')
    // It joins again under another id, listens on another port, and answers.
    const joined = (): Promise<string> =>
      database.query(`SELECT address FROM cluster_member WHERE id NOT IN ('${members.replaceAll('\n', "', '")}')`)
    await expect.poll(joined, PATIENCE).toContain(':')
    const again = { url: `http://${await joined()}` }
    expect(await (await post(again, path, 'three')).json()).toMatchObject({ response: 'Hello from the fake.' })

    expect(await states()).toBe('interrupted\ndone\ndone')
    const session = (await (await fetch(`${two.url}/api/agents/${agents[0]?.id}/session`)).json()) as Json
    expect(session.messages.map(({ content }: Json) => content)).toEqual([
      'one',
      '[Interrupted: the service stopped before this was answered.]',
      'two',
      'Hello from the fake.',
      'three',
      'Hello from the fake.',
    ])
    expect(fake.requests).toHaveLength(3)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}, 120_000)
