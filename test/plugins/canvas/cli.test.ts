import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
let agent = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-canvas-'))
  const caller = fileURLToPath(new URL('../../fixtures/tool-caller', import.meta.url))
  host = await startHost({ home, plugins: [...turnPlugins, 'providers/builtin', 'system', 'canvas', caller] })
  const manifest_toml = 'name = "artist"\n[capabilities]\ntools = ["*"]\n'
  agent = (await host.json('POST', '/api/agents', { manifest_toml })).body.agent_id
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['canvas', ...args, '--home', home])

it('lists, shows and removes canvases by the beginning of their ids', async () => {
  expect((await svc('list')).stdout).toBe('There are no canvases.\n')
  const shown = await host.json('POST', '/test/tools/canvas_present', {
    agent_id: agent,
    args: { html: '<h1>Sum</h1><p>1 &lt; 2</p>', title: 'Report\u001b[31m' },
  })
  expect(shown.body.failed, shown.body.text).toBe(false)
  const [, id = ''] = /canvas ([0-9a-f-]{36})/.exec(shown.body.text) ?? []
  expect((await host.json('GET', `/api/canvas?agent_id=${agent}`)).body).toMatchObject({
    items: [{ canvas_id: id, agent_id: agent, session_id: 'session' }],
    total: 1,
    offset: 0,
    limit: 100,
  })
  expect((await svc('list')).stdout).toMatch(new RegExp(`^TITLE +SHOWN +AGENT +ID\\nReport\\S+ .* ${agent} +${id}\\n$`))
  expect((await svc('list')).stdout).not.toContain('\u001b')
  expect((await svc('list', '--session', 'another')).stdout).toBe('There are no canvases.\n')
  const other = '00000000-0000-4000-8000-000000000000'
  expect((await host.json('GET', `/api/canvas?agent_id=${other}`)).body).toMatchObject({ items: [], total: 0 })
  expect((await svc('show', id.slice(0, 8))).stdout).toMatch(/^Report\S+\nSum\n1 < 2\n$/)
  expect((await svc('show', id, '--html')).stdout).toBe('<h1>Sum</h1><p>1 &lt; 2</p>\n')
  expect((await svc('remove', id.slice(0, 8))).stdout).toBe(`Canvas ${id} is deleted.\n`)
  expect((await host.json('GET', `/api/canvas/${id}`)).status).toBe(404)
  expect((await host.json('DELETE', `/api/canvas/${id}`)).status).toBe(404)
  expect(await svc('show', id.slice(0, 8))).toMatchObject({
    code: 4,
    stderr: expect.stringContaining(`no canvas "${id.slice(0, 8)}"`),
  })
})
