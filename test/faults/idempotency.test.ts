import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'
import { generator } from './crash.ts'

let home: string
let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider()
  home = await mkdtemp(join(tmpdir(), 'svc-keys-'))
  await writeFile(
    join(home, 'config.toml'),
    `default_provider = "openai"\ndefault_model = "fake-1"\n[rate_limit]\ntokens_per_minute = 1000000000\n[providers.openai]\nbase_url = "${fake.url}"\napi_key = "k"\n`,
  )
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

it('fifty requests with one key and a kill in the middle are one message, and the key answers the same ever after', async () => {
  const random = generator(7)
  const seen: string[] = []
  for (let round = 0; round < 3; round++) {
    const message = `message ${round}`
    fake.always({ text: ['Hello', ' from', ' the', ' fake.'], gapMs: 20 })
    const send = async (url: string, agent: string, text = message) => {
      const answer = await fetch(`${url}/api/agents/${agent}/message`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `key-${round}` },
        body: JSON.stringify({ message: text }),
      })
      return `${answer.status} ${await answer.text()}`
    }
    const agentOf = async (url: string): Promise<string> =>
      ((await (await fetch(`${url}/api/agents`)).json()) as { id: string }[])[0]?.id ?? ''
    {
      await using daemon = await startDaemon({ home })
      const agent = await agentOf(daemon.url)
      // What is answered before the kill has to be answered the same after it.
      const all = Array.from({ length: 50 }, () =>
        send(daemon.url, agent).then(
          (text) => {
            seen[round] ??= text
          },
          () => undefined,
        ),
      )
      await new Promise((resolve) => {
        setTimeout(resolve, round === 0 ? 1500 : random() * 150)
      })
      await daemon.kill()
      await Promise.all(all)
    }
    await using daemon = await startDaemon({ home })
    const agent = await agentOf(daemon.url)
    const answers = new Set(await Promise.all(Array.from({ length: 5 }, () => send(daemon.url, agent))))
    answers.add(await send(daemon.url, agent))
    if (seen[round] !== undefined) answers.add(seen[round] ?? '')
    expect(answers.size).toBe(1)
    expect([...answers][0]).toMatch(/^200 /)
    expect(await send(daemon.url, agent, 'something else')).toMatch(/^409 /)
    const { messages } = (await (await fetch(`${daemon.url}/api/agents/${agent}/session?limit=100`)).json()) as {
      messages: { role: string; content: string }[]
    }
    expect(messages.filter(({ role, content }) => role === 'User' && content === message)).toHaveLength(1)
  }
})
