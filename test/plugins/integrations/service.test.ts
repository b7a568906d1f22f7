import { expect, it } from 'vitest'
import { openWorld } from './world.ts'

const code = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'added',
    (error: { readonly code?: string; readonly message: string }) => `${error.code ?? 'failed'}: ${error.message}`,
  )

it('adds with secrets for the program, announces it, and removes it without a rest', async () => {
  await using world = await openWorld()
  const { service, servers } = world
  const credentials = { SENTRY_AUTH_TOKEN: 'sntrys_1', SENTRY_ORG_SLUG: 'acme' }
  await service.add({ template: 'sentry', name: 'Sentry (Über)', credentials })
  expect(servers.added.get('sentry-uber')).toMatchObject({
    transport: 'stdio',
    command: 'npx',
    args: ['-y', '@sentry/mcp-server@0.39.0', '--organization-slug', 'acme'],
    env: ['SENTRY_AUTH_TOKEN', 'SENTRY_ACCESS_TOKEN', 'SENTRY_ORG_SLUG'],
    credentials: { SENTRY_AUTH_TOKEN: 'sntrys_1', SENTRY_ACCESS_TOKEN: 'sntrys_1' },
    variables: { SENTRY_ORG_SLUG: 'acme' },
    network: ['sentry.io', '*.sentry.io', 'registry.npmjs.org'],
    origin: 'integration:sentry',
  })
  expect(await service.list()).toMatchObject([{ state: 'ready', installed: { name: 'Sentry (Über)' } }])
  await service.remove('sentry-uber')
  expect([servers.added.size, await service.list()]).toEqual([0, []])
  expect(world.announced.map(({ change }) => change)).toEqual(['added', 'removed'])
  expect(world.trail).toEqual([
    'integration "sentry-uber" (sentry) added',
    'integration "sentry-uber" (sentry) removed',
  ])
  expect(JSON.stringify([world.trail, world.announced])).not.toContain('sntrys_1')
})

it.each([
  [
    { template: 'github', token: 'ghp_1' },
    { transport: 'http', headers: { authorization: 'Bearer ghp_1' } },
  ],
  [{ template: 'notion' }, { transport: 'http', url: 'https://mcp.notion.com/mcp', oauth: { scopes: [] } }],
  [
    { template: 'gmail', credentials: { GOOGLE_CLIENT_ID: 'c', GOOGLE_CLIENT_SECRET: 's' } },
    { url: 'https://gmailmcp.googleapis.com/mcp/v1', oauth: { client_id: 'c', client_secret: 's' } },
  ],
  [
    { template: 'teams-mcp', credentials: { TEAMS_TENANT_ID: '../x', TEAMS_CLIENT_ID: 'c' } },
    { url: 'https://agent365.svc.cloud.microsoft/agents/tenants/..%2Fx/servers/mcp_TeamsServer' },
  ],
  [
    { template: 'filesystem', credentials: { FILESYSTEM_ROOT: '/srv/documents/ours' } },
    { args: expect.arrayContaining(['/srv/documents/ours']) },
  ],
  [
    { template: 'memory' },
    { credentials: {}, variables: { MEMORY_FILE_PATH: expect.stringMatching(/\/mcp\/memory\/memory\.jsonl$/) } },
  ],
])('%j reaches its vendor as it must', async (request, spec) => {
  await using world = await openWorld({ write: { filesystem: ['/srv/documents'] } })
  await world.service.add(request)
  expect(world.servers.added.get(request.template)).toMatchObject(spec)
})

it.each([
  [{ template: 'githup' }, /^template_not_found: .*did you mean "github"\?/],
  [{ template: 'github' }, /^invalid_request: credentials\.GITHUB_PERSONAL_ACCESS_TOKEN: github needs it/],
  [{ template: 'gmail' }, /^invalid_request: credentials\.GOOGLE_CLIENT_ID/],
  [{ template: 'sentry', token: 't' }, /^invalid_request: credentials\.SENTRY_ORG_SLUG/],
  [{ template: 'exa-search', credentials: { EXA_KEY: 'k' } }, /^invalid_request: .*its variables are EXA_API_KEY$/],
  [{ template: 'exa-search', token: 'a\nb' }, /^invalid_request: credentials\.EXA_API_KEY: expected one line/],
  [{ template: 'memory', token: 't' }, /^invalid_request: token: memory needs no secret/],
  [{ template: 'time', name: '***' }, /^invalid_request: name: /],
  [{ template: 'redis', token: 'redis://h' }, /^conflict: Redis connects .* add "redis" to trusted/],
  [
    { template: 'filesystem', credentials: { FILESYSTEM_ROOT: 'documents' } },
    /^invalid_request: credentials\.FILESYSTEM_ROOT: expected an absolute path/,
  ],
  [
    { template: 'filesystem', credentials: { FILESYSTEM_ROOT: '/srv/secrets' } },
    /^conflict: .*may not write \/srv\/secrets: name the folder in plugins\.integrations\.write\.filesystem/,
  ],
  [
    { template: 'gcp-mcp', credentials: { GOOGLE_APPLICATION_CREDENTIALS: '/srv/documents/../google/key.json' } },
    /^conflict: .*may not read .*plugins\.integrations\.read\.gcp-mcp/,
  ],
  [
    { template: 'jira', token: 't', credentials: { JIRA_INSTANCE_URL: 'acme', JIRA_USER_EMAIL: 'a@b' } },
    /JIRA_INSTANCE_URL: expected an address/,
  ],
])('refuses %j and leaves nothing', async (request, problem) => {
  await using world = await openWorld({ write: { filesystem: ['/srv/documents'] } })
  expect(await code(world.service.add(request))).toMatch(problem)
  expect([world.servers.added.size, await world.service.list(), world.trail]).toEqual([0, [], []])
})

it('a server that does not start leaves nothing, a name is taken once, and missing programs are named', async () => {
  await using world = await openWorld({ fetch_packages: false })
  expect(await code(world.service.add({ template: 'time' }))).toMatch(
    /^conflict: The program mcp-server-time is not installed .* install the package mcp-server-time of PyPI/,
  )
  world.servers.failure = 'it ended with code 1'
  expect(await code(world.service.add({ template: 'linear', token: 'lin_1' }))).toBe('failed: it ended with code 1')
  expect(await world.service.list()).toEqual([])
  world.servers.failure = undefined
  const both = await Promise.all([1, 2].map(() => code(world.service.add({ template: 'linear', token: 'lin_1' }))))
  expect(both.toSorted()).toEqual([
    'added',
    expect.stringMatching(/^conflict: There is an integration "linear" already/),
  ])
  world.servers.added.set('github', { name: 'github', transport: 'http' })
  expect(await code(world.service.add({ template: 'github', token: 't' }))).toMatch(/There is an MCP server "github"/)
})

it('what the end of the process cut off is undone by the next one', async () => {
  await using world = await openWorld()
  const cut = new Promise<void>((resolve) => (world.servers.onAdd = resolve))
  world.servers.add = ((spec: { readonly name: string; readonly transport: 'http' }) => {
    world.servers.added.set(spec.name, spec)
    world.servers.onAdd()
    return new Promise(() => {})
  }) as never
  void world.service.add({ template: 'linear', token: 'lin_1' })
  await cut
  const another = world.another().service
  await another.recover()
  // The one that adds it lives.
  expect([world.servers.added.size, await code(another.add({ template: 'linear', token: 'lin_1' }))]).toEqual([
    1,
    expect.stringMatching(/^conflict/),
  ])
  const { service } = world.restart()
  expect([await service.list(), world.servers.added.size]).toEqual([[], 1])
  await service.recover()
  expect([await service.list(), world.servers.added.size]).toEqual([[], 0])
  expect(world.trail).toEqual(['integration "linear" (linear) removed: its adding was cut off'])
})

it('goes with its MCP server', async () => {
  await using world = await openWorld()
  await world.service.add({ template: 'linear', token: 'lin_1' })
  await world.service.serverRemoved('linear')
  expect(await world.service.list()).toHaveLength(1)
  world.servers.added.clear()
  expect(await world.service.list()).toMatchObject([{ state: 'error' }])
  await world.service.serverRemoved('linear')
  expect(await world.service.list()).toEqual([])
})

it('the file decides what a program may do, if it is the one of its template', async () => {
  await using world = await openWorld({ trusted: ['redis'], write: { filesystem: ['/srv/documents'] } })
  const program = async (template: string, credentials: Readonly<Record<string, string>>) => {
    await world.service.add({ template, credentials })
    const { command = '', args = [], env = [] } = world.servers.added.get(template) ?? {}
    return { name: template, origin: `integration:${template}`, command, args, env }
  }
  const redis = await program('redis', { REDIS_URL: 'redis://h' })
  const files = await program('filesystem', { FILESYSTEM_ROOT: '/srv/documents/ours' })
  expect(await world.service.rightsOf(redis)).toEqual({ trust: 'operator' })
  expect(await world.service.rightsOf(files)).toEqual({ write: ['/srv/documents'] })
  const version = (text: string) => redis.args.map((each) => each.replace(/(?<=[@=])\d.*$/, text))
  expect(await world.service.rightsOf({ ...redis, args: version('0.0.1') })).toEqual({ trust: 'operator' })
  const forged = [
    { command: '/bin/sh' },
    { args: [...redis.args, '--more'] },
    { args: [] },
    { args: version('npm:other@1.0.0') },
    { args: version('https://example.org/other.tgz') },
    { env: [...redis.env, 'NODE_OPTIONS'] },
    { origin: 'integration:filesystem' },
    { origin: 'integration:none' },
  ]
  for (const change of forged)
    expect(await world.service.rightsOf({ ...redis, ...change }), JSON.stringify(change)).toEqual({})
  // One that the file drops, and one of a daemon whose file never named it.
  expect(await world.service.rightsOf({ ...redis, name: 'other' })).toEqual({})
})
