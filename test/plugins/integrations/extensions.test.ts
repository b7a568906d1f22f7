import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let host: TestHost
beforeAll(async () => {
  host = await startHost({
    plugins: [...turnPlugins, 'mcp', 'integrations', 'plugin-admin'],
    memory: true,
    listen: false,
  })
})
afterAll(() => host?.[Symbol.asyncDispose]())

it('the catalogue of extensions has the integrations beside the plugins', async () => {
  const { body } = await host.json('GET', '/api/extensions')
  expect(body.total).toBe(33)
  expect(body.extensions).toContainEqual({
    name: 'github',
    kind: 'integration',
    display_name: 'GitHub',
    description: expect.any(String),
    icon: expect.any(String),
    category: 'devtools',
    status: 'available',
    tags: expect.arrayContaining(['git']),
    installed: false,
    tool_count: 0,
    installed_at: null,
  })
  expect((await host.json('GET', '/api/extensions/github')).body).toMatchObject({
    kind: 'integration',
    required_env: expect.arrayContaining(['GITHUB_PERSONAL_ACCESS_TOKEN']),
    has_oauth: true,
    setup_instructions: expect.stringContaining('token'),
    health: 'ok',
  })
})

it.each([
  ['GET', '/api/extensions/githup', undefined, 404, 'did you mean "github"?'],
  ['POST', '/api/extensions/install', { name: 'github' }, 400, 'GITHUB_PERSONAL_ACCESS_TOKEN'],
  ['POST', '/api/extensions/install', { name: 'githup', kind: 'integration' }, 404, 'did you mean "github"?'],
  ['POST', '/api/extensions/uninstall', { name: 'github' }, 404, 'github'],
])('%s %s %j is %i', async (method, path, body, status, message) => {
  const answer = await host.json(method, path, body)
  expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
})

it.each([
  ['?q=database%20sql', ['postgresql', 'sqlite-mcp']],
  ['?category=ai&q=search', ['brave-search', 'exa-search']],
  ['?q=nothing-like-it', []],
])('the catalogue%s is searched', async (query, ids) => {
  const { body } = await host.json('GET', `/api/integrations/available${query}`)
  expect(body).toMatchObject({ count: ids.length, categories: expect.arrayContaining(['cloud', 'data']), problems: [] })
  expect(body.integrations.map(({ id }: { id: string }) => id).toSorted()).toEqual(ids)
})
