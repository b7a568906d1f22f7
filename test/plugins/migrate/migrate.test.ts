import { execFile as execFileCallback } from 'node:child_process'
import {
  chmod,
  chown,
  cp,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { SCOUT, writeDatabase } from './openfang-home.ts'

const execFile = promisify(execFileCallback)
const fixtures = fileURLToPath(new URL('../../fixtures/migrate', import.meta.url))
const more =
  'system queue files settings events tasks result-delivery approvals clock schedules workflows triggers skills channels ' +
  'channels/telegram channels/discord memory kv providers/anthropic providers/openai-compatible migrate'
const plugins = [...turnPlugins, ...more.split(' ')]
let folder: string
let host: TestHost
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-'))
  host = await startHost({ plugins, listen: false, config: { plugins: { migrate: { max_workspace_files: 2 } } } })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const call = (method: string, path: string, body?: unknown) => host.json<Json>(method, path, body)
const copy = async (fixture: string, name: string = fixture): Promise<string> => {
  const path = join(folder, name)
  await cp(join(fixtures, fixture), path, { recursive: true })
  return path
}
const migrate = async (source: string, more: object = {}): Promise<Json> => {
  const { status, body } = await call('POST', '/api/migrate', { source, ...more })
  expect([status, body.error]).toEqual([200, undefined])
  return body
}
const agentNamed = async (name: string): Promise<Json> =>
  (await call('GET', '/api/agents')).body.find((agent: Json) => agent.name === name)
const reasonsOf = (body: Json, list: 'left' | 'skipped' = 'skipped'): Record<string, string> =>
  Object.fromEntries(body[list].map(({ kind, name, reason }: Json) => [`${kind} ${name}`, reason]))

describe('a home of OpenClaw', () => {
  it('is scanned: what it holds, and what stays behind', async () => {
    const path = await copy('openclaw')
    const { status, body } = await call('POST', '/api/migrate/scan', { path })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      type: 'openclaw',
      version: 'openclaw.json',
      agents: [
        { name: 'main', format: 'json5', convertible: true },
        { name: 'Coder', format: 'json5' },
        { name: 'away', format: 'json5' },
      ],
      skills: ['haiku'],
      sessions: 2,
      channels: ['telegram', 'discord/work'],
      memories: 4,
      cron_jobs: ['Morning: news!', 'Often', 'Of nobody', 'Past'],
    })
    expect(reasonsOf(body, 'left')).toMatchObject({
      'agent without an id': 'it has no id',
      'channel slack': expect.stringContaining('SLACK_TOKEN is not in the folder'),
      'channel whatsapp': expect.stringContaining('channels login whatsapp'),
      'channel imessage': 'there is no counterpart of it here',
      'cron Program': expect.stringContaining('only what an agent is asked comes over'),
      'workspace away': expect.stringContaining('/home/ada/elsewhere lies outside'),
      'config hooks': expect.stringContaining('programs'),
      'config hooks in openclaw.json': expect.stringContaining('trigger add'),
      'config agents: heartbeat in openclaw.json': expect.stringContaining('schedule add'),
    })
  })

  it('is taken over: agents, files, conversations with their times, channels and schedules that are off', async () => {
    const path = join(folder, 'openclaw')
    const rehearsed = await migrate(path, { dry_run: true })
    expect(rehearsed).toMatchObject({ status: 'checked', agents_imported: 3, reports: [] })
    expect(await agentNamed('main')).toBeUndefined()

    const body = await migrate(path)
    const named = ({ imported }: Json) => imported.map(({ kind, name }: Json) => `${kind} ${name}`).toSorted()
    expect(named(rehearsed)).toEqual(named(body))
    expect(reasonsOf(rehearsed)).toEqual(reasonsOf(body))
    const { done, total } = (await call('GET', '/api/migrate/status')).body
    expect(done).toBe(total)
    expect(body).toMatchObject({ status: 'completed', agents_imported: 3, skills_imported: 1, sessions_imported: 1 })
    const main = await agentNamed('main')
    const detail = (await call('GET', `/api/agents/${main.id}`)).body
    expect(detail.model).toMatchObject({ provider: 'anthropic', model: 'claude-sonnet-4-5' })
    const sessions = (await call('GET', `/api/agents/${main.id}/sessions`)).body.sessions
    const found = sessions.find((session: Json) => session.label === 'agent:main:main')
    expect(found.created_at).toBe('2026-02-02T08:00:00.000Z')
    const { messages } = (await call('GET', `/api/sessions/${found.session_id ?? found.id}`)).body
    const said = messages.map((message: Json) => [message.role, message.created_at ?? message.timestamp])
    expect(said).toEqual([
      ['User', '2026-02-02T08:00:01.000Z'],
      ['Assistant', '2026-02-02T08:00:02.000Z'],
      ['Assistant', '2026-02-02T08:00:04.000Z'],
      ['User', '2026-02-03T09:00:00.000Z'],
    ])
    expect(messages[1].tools ?? messages[1].tool_calls).toMatchObject([{ name: 'read', result: 'In Kiel.' }])
    expect(JSON.stringify(messages)).not.toContain('A branch that was left')
    const { results, complete } = (await call('GET', '/api/sessions/search?q=BOAT%20where')).body
    expect([results.map((one: Json) => one.created_at), complete]).toEqual([['2026-02-02T08:00:01.000Z'], true])
    const workspace = join(host.home, 'data', 'workspaces', main.id)
    expect(await readFile(join(workspace, 'SOUL.md'), 'utf8')).toContain('You are calm.')

    const asked = { agentId: main.id, agentName: 'main', sessionId: 's', turnId: 't', callId: 'c' }
    const { signal } = new AbortController()
    const recalled = await host.app.callTool('memory_search', { query: 'boat Kiel' }, { ...asked, signal })
    expect(recalled.text).toContain('The boat lies in Kiel.')
    const channels = (await call('GET', '/api/channels/telegram')).body
    expect(JSON.stringify(channels)).toContain('"dm_policy":"allowed_only"')
    expect(JSON.stringify(channels)).toContain('"allowed_users":["42","@ada"]')
    expect(JSON.stringify(channels)).not.toContain('telegram-secret')
    expect(reasonsOf(body)).toMatchObject({
      'workspace workspace/memory': 'there are more than 2 files: raise plugins.migrate.max_workspace_files',
      'session coder/empty': 'it has no messages of a person',
      'cron Of nobody': 'its agent "gone" is not here',
      'cron Past': expect.any(String),
    })
    const jobs = (await call('GET', `/api/cron/jobs?agent_id=${main.id}`)).body.jobs
    expect(jobs.map(({ name, enabled }: Json) => [name, enabled]).toSorted()).toEqual([
      ['Morning news', false],
      ['Often', false],
    ])
    const names = (await call('GET', '/api/skills')).body.skills.map(({ name }: Json) => name)
    expect(names).toContain('haiku')

    // Keys of providers that have none here, by their names only.
    expect(body.imported.filter(({ kind }: Json) => kind === 'key')).toEqual(
      ['anthropic', 'groq', 'mistral'].map((name) => ({ kind: 'key', name, destination: 'the vault' })),
    )
    const { providers } = (await call('GET', '/api/providers')).body
    const withKey = providers.filter(({ auth_status: status }: Json) => status === 'configured')
    expect(withKey.map(({ id, name }: Json) => id ?? name)).toEqual(
      expect.arrayContaining(['anthropic', 'groq', 'mistral']),
    )
    expect(reasonsOf(body)['key openai-codex']).toContain('sign in anew')

    const [markdown = '', json = ''] = body.reports
    expect(await readFile(markdown, 'utf8')).toBe(body.report_markdown)
    const stored = await readFile(json, 'utf8')
    expect(JSON.parse(stored).imported).toHaveLength(body.imported_count)
    const told = [stored, body.report_markdown, JSON.stringify([rehearsed, body]), host.log.join('\n')].join('\n')
    expect(told).not.toMatch(/(telegram|discord|anthropic|groq|mistral|assistant|oauth)-secret/)
    const trail = JSON.stringify((await call('GET', '/api/audit/recent?limit=500')).body)
    expect(trail).toContain('key of provider groq stored')
    expect(trail).not.toMatch(/-secret/)
    const audit = (await call('GET', '/api/audit/recent?limit=10&event_type=data_migrated')).body.entries
    expect(audit.at(-1).details).toMatch(/completed: \d+ came/)
    expect((await call('GET', '/api/migrate/status')).body).toMatchObject({ status: 'completed', run_id: body.run_id })
  })

  it('comes over once: the second run makes nothing, and what was removed stays removed', async () => {
    const path = join(folder, 'openclaw')
    const coder = await agentNamed('Coder')
    expect((await call('DELETE', `/api/agents/${coder.id}`)).status).toBe(200)
    const before = (await call('GET', '/api/agents')).body
    const body = await migrate(path)
    expect(body).toMatchObject({ imported_count: 0, agents_imported: 0, sessions_imported: 0 })
    expect(body.unchanged_count).toBeGreaterThan(5)
    const { skipped } = body
    expect(new Set(skipped.map(({ kind, name }: Json) => `${kind} ${name}`)).size).toBe(skipped.length)
    expect((await call('GET', '/api/agents')).body).toEqual(before)
    expect(body.warnings.join()).toContain('"Coder" came over before and was removed here')
  })

  it('of the first versions is read from YAML; a taken name is another one, and broken files stay behind', async () => {
    const path = await copy('openclaw-2025')
    await call('POST', '/api/agents', { manifest_toml: 'name = "helper"\n' })
    const body = await migrate(path, { import_channels: false })
    expect(body).toMatchObject({ agents_imported: 1, sessions_imported: 1 })
    expect(body.warnings.join('\n')).toContain('that of the source becomes "helper-openclaw"')
    const helper = await agentNamed('helper-openclaw')
    expect((await call('GET', `/api/agents/${helper.id}`)).body.model.provider).toBe('anthropic')
    expect(reasonsOf(body)).toMatchObject({
      'agent agents/broken/agent.yaml': expect.stringContaining('it cannot be read'),
      'agent agents/loop/agent.yaml': expect.stringContaining('aliases'),
    })
  })
})

describe('a home of OpenFang or LibreFang', () => {
  it.each([
    ['openfang', 1],
    ['librefang', 17],
  ] as const)('%s, version %d of the database', async (product, version) => {
    const path = await copy('openfang', `.${product}`)
    await writeDatabase(path, product, version)
    const { body: scanned } = await call('POST', '/api/migrate/scan', { path })
    expect(scanned).toMatchObject({
      type: product,
      version: `data/${product}.db, version ${version}`,
      agents: [
        { name: 'scout', format: 'toml' },
        { name: 'clerk', format: 'database' },
      ],
      skills: ['notes'],
      sessions: 2,
      memories: 1,
      channels: ['telegram'],
      workflows: ['review'],
      cron_jobs: ['rounds'],
      triggers: 1,
    })
    const wanted = { import_channels: false, import_skills: version === 1 }
    const rehearsed = await migrate(path, { ...wanted, dry_run: true })
    const body = await migrate(path, wanted)
    expect(body).toMatchObject({ agents_imported: 2, sessions_imported: 1 })
    const workflowsOf = ({ imported }: Json) => imported.filter(({ kind }: Json) => kind === 'workflow')
    expect([workflowsOf(rehearsed), workflowsOf(body)]).toMatchObject([[{ name: 'review' }], [{ name: 'review' }]])
    expect(reasonsOf(body)).toMatchObject({
      'session 55555555-5555-4555-8555-555555555555': 'its agent is not there',
      'channel gotify': expect.stringContaining('it needs token, client_token, and GOTIFY_APP_TOKEN'),
      'value __openfang_schedules': 'it is a value of the other system itself',
    })
    const scout = await agentNamed(version === 1 ? 'scout' : 'scout-librefang')
    const workflow = (await call('GET', `/api/workflows/${workflowsOf(body)[0].destination}`)).body
    expect(workflow.steps.map(({ agent_name: name }: Json) => name)).toEqual([scout.name, scout.name])
    const listed = (await call('GET', `/api/agents/${scout.id}/sessions`)).body.sessions
    const session = listed.find(({ created_at: at }: Json) => at === '2026-01-05T10:00:00.000Z')
    const { messages } = (await call('GET', `/api/sessions/${session.session_id ?? session.id}`)).body
    expect(messages.map(({ role }: Json) => role)).toEqual(['User', 'Assistant', 'Assistant'])
    expect((await call('GET', `/api/memory/agents/${scout.id}/kv`)).body.kv_pairs).toEqual([
      expect.objectContaining({ key: 'gate', value: { closes: 21 } }),
    ])
    const triggers = (await call('GET', `/api/triggers?agent_id=${scout.id}`)).body
    expect(triggers).toMatchObject([{ enabled: false, prompt_template: 'event: {{event}}' }])
    const again = await migrate(path, { import_channels: false, import_skills: false })
    expect(again.imported_count).toBe(0)
    expect(SCOUT).not.toBe(scout.id)
  })
})

it('agents that share a folder, and memories that stand there twice, make each memory once', async () => {
  const path = join(folder, 'shared')
  await mkdir(join(path, 'workspace'), { recursive: true })
  const list = [
    { id: 'one', name: 'sharing-one', workspace: '~/.openclaw/workspace' },
    { id: 'two', name: 'sharing-two', workspace: '~/.openclaw/workspace' },
  ]
  await writeFile(join(path, 'openclaw.json'), JSON.stringify({ agents: { list } }))
  await writeFile(join(path, 'workspace', 'MEMORY.md'), '- The key is under the mat.\n- The key is under the mat.\n')
  const body = await migrate(path)
  expect(body.imported.filter(({ kind }: Json) => kind === 'memory')).toEqual([
    { kind: 'memory', name: 'sharing-one', destination: '1 memory' },
  ])
  expect(body.warnings.join('\n')).toContain('memory_read = ["sharing-one.user"]')
})

describe('a hostile folder', () => {
  it('leads nowhere else: links, files with several names, pipes and deep YAML stay behind', async () => {
    const path = await copy('openclaw', 'hostile')
    const outside = join(folder, 'outside')
    await mkdir(join(outside, 'sessions'), { recursive: true })
    await writeFile(join(outside, 'secret.jsonl'), '{"role":"user","content":"the secret of another folder"}\n')
    await writeFile(join(outside, 'SECRET.md'), '- the secret of another folder\n')
    const sessions = join(path, 'agents', 'main', 'sessions')
    await symlink(join(outside, 'secret.jsonl'), join(sessions, 'linked.jsonl'))
    await link(join(outside, 'secret.jsonl'), join(sessions, 'hard.jsonl'))
    await rm(join(path, 'workspace', 'MEMORY.md'))
    await symlink(join(outside, 'SECRET.md'), join(path, 'workspace', 'MEMORY.md'))
    await rm(join(path, 'agents', 'coder'), { recursive: true })
    await symlink(outside, join(path, 'agents', 'coder'))
    await symlink(outside, join(path, 'workspaces', 'coder', 'away'))
    await execFile('mkfifo', [join(path, 'workspaces', 'coder', 'pipe')])
    await writeFile(join(path, 'workspaces', 'coder', 'gpj\u202e.exe'), 'x', { mode: 0o600 })
    const { body } = await call('POST', '/api/migrate/scan', { path })
    const reasons = reasonsOf(body, 'left')
    expect(reasons).toMatchObject({
      'session agents/main/sessions/linked.jsonl': 'it is a link, and links are not followed',
      'memory workspace/MEMORY.md': expect.stringContaining('link'),
    })
    const result = await migrate(path, { import_channels: false, import_skills: false })
    expect(reasonsOf(result)['session main/hard']).toContain('several names')
    const kept = await readFile(result.reports[1], 'utf8')
    expect(reasonsOf(result)).toMatchObject({
      'workspace workspaces/coder/away': 'it is a link, and links are not followed',
      'workspace workspaces/coder/pipe': 'it is neither a file nor a folder',
    })
    expect(result.report_markdown).toContain('`workspaces/coder/pipe`')
    expect(kept + result.report_markdown).not.toContain('\u202e')
    for (const { id } of (await call('GET', '/api/agents')).body) {
      const workspace = join(host.home, 'data', 'workspaces', id)
      const files = await readdir(workspace, { recursive: true }).catch(() => [])
      for (const name of files)
        if ((await lstat(join(workspace, name))).isFile())
          expect(await readFile(join(workspace, name), 'utf8')).not.toContain('the secret of another folder')
    }
    expect(kept).not.toContain('the secret of another folder')
  })

  it.each([
    ['relative', 'invalid_request', 'is not absolute'],
    ['/nonexistent/home', 'invalid_request', 'there is no folder'],
    ['HOME', 'forbidden', 'in the home of this daemon'],
    ['HOME/data', 'forbidden', 'in the home of this daemon'],
    ['/', 'forbidden', 'in the home of this daemon'],
    ['FOLDER/link', 'forbidden', 'is a link'],
    ['FOLDER/outside', 'invalid_request', 'is no home of OpenClaw, OpenFang or LibreFang'],
  ])('a path that must not be read: %s', async (given, code, words) => {
    await symlink(join(folder, 'openclaw'), join(folder, 'link')).catch(() => undefined)
    await rm(join(folder, 'outside', 'sessions'), { recursive: true, force: true })
    const path = given.replace('HOME', host.home).replace('FOLDER', folder)
    const { body } = await call('POST', '/api/migrate/scan', { path })
    expect(body.error ?? body).toMatchObject({})
    expect(JSON.stringify(body)).toContain(code)
    expect(JSON.stringify(body)).toContain(words)
  })

  it.each([
    ['langchain', 'docs/mcp.md'],
    ['AutoGPT', 'docs/automation.md'],
    ['auto-gpt', 'docs/automation.md'],
    ['openclaude', 'one of openclaw, openfang, librefang'],
  ])('%s is answered with what to do instead', async (source, words) => {
    const { status, body } = await call('POST', '/api/migrate', { source })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(words)])
  })

  it('files that the daemon may not read are told', async () => {
    if (process.getuid?.() === 0) return
    const path = await copy('openclaw-2025', 'unreadable')
    await chmod(join(path, 'config.yaml'), 0)
    const { body } = await call('POST', '/api/migrate/scan', { path })
    expect(JSON.stringify(body)).toContain('the daemon may not read it')
  })

  it.runIf(process.getuid?.() === 0)('a file of another user in a workspace is refused, and named', async () => {
    const path = join(folder, 'foreign-file')
    const secret = 'What another user wrote.'
    await mkdir(join(path, 'workspace', 'memory'), { recursive: true })
    await writeFile(join(path, 'openclaw.json'), '{ agents: { list: [{ id: "guest" }] } }')
    await writeFile(join(path, 'workspace', 'SOUL.md'), 'You are calm.\n')
    for (const name of ['MEMORY.md', 'memory/2026-01-01.md']) {
      await writeFile(join(path, 'workspace', name), `- ${secret}\n`)
      await chown(join(path, 'workspace', name), 12_345, 12_345)
    }
    const body = await migrate(path)
    const foreign = 'it belongs to another user than the folder'
    const reasons = reasonsOf(body)
    expect(Object.entries(reasons).filter(([, reason]) => reason === foreign)).toEqual(
      expect.arrayContaining([
        [expect.stringContaining('workspace/MEMORY.md'), foreign],
        [expect.stringContaining('workspace/memory/2026-01-01.md'), foreign],
      ]),
    )
    const { id } = await agentNamed('guest')
    expect(await readdir(join(host.home, 'data', 'workspaces', id))).toEqual(['SOUL.md'])
    const found = await call('GET', `/api/memory/search?q=${encodeURIComponent(secret)}`)
    expect([found.status, JSON.stringify(found.body)]).toEqual([200, expect.not.stringContaining(secret)])
  })
})
