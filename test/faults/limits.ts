import { cpSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startFakeProvider } from '../support/fake-provider.ts'
import { call, examine, prepareHome } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * Few file descriptors, a small heap, an answer of a tool of 200 MB and a line of a provider of as much: refused in
 * order, and it goes on.
 */
export async function limits({ built, rounds }: FaultOptions): Promise<FaultReport> {
  await using fake = await startFakeProvider()
  using home = await prepareHome(
    { built },
    {
      SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
      SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
      SVC_PLUGINS__PROVIDERS__TRIES: '1',
      SVC_PLUGINS__APPROVALS__POLICY: 'never',
    },
  )
  cpSync(
    fileURLToPath(new URL('../fixtures/plugins/trouble', import.meta.url)),
    join(home.path, 'plugins', 'trouble'),
    { recursive: true },
  )
  const problems: string[] = []
  await using daemon = await home.start({
    under: ['prlimit', '--nofile=200'],
    env: { NODE_OPTIONS: '--max-old-space-size=256' },
  })
  const {
    body: { agent_id: agent },
  } = await call(daemon, 'POST', '/api/agents', {
    manifest_toml: 'name = "limits"\n[model]\nprovider = "openai"\nmodel = "fake-1"\n[capabilities]\ntools = ["*"]\n',
  })
  for (let round = 0; round < rounds; round++) {
    // A session that grew too long would be summed up first, by a request that takes the answer meant for another.
    await call(daemon, 'POST', `/api/agents/${agent}/session/reset`)
    // More connections than there are descriptors, open at the same time.
    const port = Number(new URL(daemon.url).port)
    const sockets: Socket[] = []
    await Promise.all(
      Array.from(
        { length: 300 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(port, '127.0.0.1', () => {
              socket.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n')
              resolve()
            })
            socket.on('error', () => resolve())
            sockets.push(socket)
          }),
      ),
    )
    for (const socket of sockets) socket.destroy()
    await recovers(daemon.url, problems, 'after more connections than descriptors')

    fake.script({ calls: [{ name: 'flood' }] }, { text: 'that was a lot' })
    const flooded = await call(daemon, 'POST', `/api/agents/${agent}/message`, { message: 'flood' }, 60_000).catch(
      (error: unknown) => ({ status: 0, body: String(error) }),
    )
    if (flooded.status !== 200)
      problems.push(`a flood of a tool answered ${flooded.status} ${JSON.stringify(flooded.body).slice(0, 200)}`)
    const sent = JSON.stringify(fake.requests.at(-1)?.body.messages ?? []).length
    if (sent > 1_000_000) problems.push(`the model got ${sent} characters of it`)

    const line = `data: {"choices":[{"delta":{"content":"${'x'.repeat(1_000_000)}`
    fake.script({
      raw: [line, ...Array.from({ length: 200 }, () => 'x'.repeat(1_000_000)), '"}}]}\n\n', 'data: [DONE]\n\n'],
    })
    const long = await call(daemon, 'POST', `/api/agents/${agent}/message`, { message: 'a long line' }, 60_000).catch(
      (error: unknown) => ({ status: 0, body: String(error) }),
    )
    if (long.status < 400 || long.status > 599)
      problems.push(`a line of 200 MB answered ${long.status} ${JSON.stringify(long.body).slice(0, 200)}`)
    await recovers(daemon.url, problems, 'after a line of 200 MB')
    fake.script({ text: 'fine again' })
    const fine = await call(daemon, 'POST', `/api/agents/${agent}/message`, { message: 'and now?' }, 60_000)
    if (fine.status !== 200)
      problems.push(`the next message answered ${fine.status} ${JSON.stringify(fine.body).slice(0, 200)}`)
    if (problems.length > 0) break
  }
  problems.push(...(await examine(daemon, home)))
  await daemon.stop()
  return { rounds, problems: problems.slice(0, 5) }
}

async function recovers(url: string, problems: string[], when: string): Promise<void> {
  for (let tried = 0; tried < 50; tried++) {
    const answer = await call({ url }, 'GET', '/api/health', undefined, 5_000).catch(() => undefined)
    if (answer?.status === 200) return
  }
  problems.push(`no answer ${when}`)
}
