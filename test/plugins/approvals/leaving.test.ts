import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'

const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
/** Longer than a test may take: a daemon that waits for the turn fails it. */
const DRAIN_MS = 600_000
let home: string
let file: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-leaving-'))
  file = join(home, 'launches.log')
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})
const boot = (): Promise<TestHost> =>
  startHost({ home, config: { plugins: { paths: [launcher], drain_ms: DRAIN_MS, launcher: { file } } } })

/** An agent with a turn that waits for a person, another message behind it, and what became of both. */
async function waiting(host: TestHost): Promise<{
  readonly agent: string
  readonly approval: string
  readonly first: Promise<Json>
  readonly second: Promise<Json>
}> {
  const {
    body: { agent_id: agent },
  } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "digger"\n[capabilities]\ntools = ["*"]\n' })
  const first = host.json('POST', `/api/agents/${agent}/message`, { message: 'use launch {"label": "once"}' })
  await expect.poll(() => states(host, agent)).toEqual(['waiting'])
  const second = host.json('POST', `/api/agents/${agent}/message`, { message: 'and then?' })
  await expect.poll(() => states(host, agent)).toEqual(['queued', 'waiting'])
  const [request] = (await host.json('GET', '/api/approvals')).body.approvals
  return { agent, approval: request.id, first, second }
}
async function states(host: TestHost, agent: string): Promise<readonly string[]> {
  return (await host.json('GET', `/api/agents/${agent}/turns`)).body.turns
    .map((turn: { state: string }) => turn.state)
    .sort()
}

it('a daemon that stops leaves a turn that waits for a person, and goes on with it when it is back', async () => {
  const host = await boot()
  const { agent, approval, first, second } = await waiting(host)
  await host.stop()
  expect(await first).toMatchObject({
    status: 503,
    body: { error: { message: expect.stringContaining('waits for a decision') } },
  })
  expect((await second).status).toBe(503)
  await using again = await boot()
  expect((await again.json('POST', `/api/approvals/${approval}/approve`)).status).toBe(200)
  await expect.poll(() => states(again, agent)).toContain('done')
  expect(await readFile(file, 'utf8')).toBe('once\n')
})

it.each(['chat', 'approvals'])(
  'the plugin %s is reloaded at once while a turn waits for a person, who is asked once',
  async (plugin) => {
    await using host = await boot()
    const { agent, approval, first, second } = await waiting(host)
    await host.json('POST', `/api/plugins/${plugin}/reload`)
    await host.plugin(plugin, 'loaded', ({ reloads }) => reloads === 1)
    await expect.poll(() => states(host, agent)).toContain('waiting')
    expect((await host.json('POST', `/api/approvals/${approval}/approve`)).status).toBe(200)
    await expect.poll(() => states(host, agent)).toContain('done')
    expect((await host.json('GET', '/api/approvals')).body.total).toBe(1)
    expect(await readFile(file, 'utf8')).toBe('once\n')
    await Promise.all([first, second])
  },
)
