import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

const more =
  'system queue files settings events tasks result-delivery approvals clock schedules workflows triggers skills channels ' +
  'channels/telegram channels/matrix memory kv providers/anthropic providers/openai-compatible migrate'
let folder: string
let host: TestHost
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-secrets-'))
  host = await startHost({ plugins: [...turnPlugins, ...more.split(' ')], listen: false })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** A secret of that place. None looks like the key of a vendor, by which it would be known anyway. */
const secret = (place: string): string => `${place}-4f9Kq2canary`

const openclaw: Readonly<Record<string, string>> = {
  'openclaw.json': `{
    // ${secret('comment')}
    agents: {
      defaults: { model: { primary: 'https://me:${secret('model')}@llm.example.org/gpt' } },
      list: [
        { id: 'main' },
        { id: 'away', workspace: 'https://me:${secret('workspace')}@files.example.org/main' },
        { id: 'odd', model: 'openai/gpt', tools: { allow: ['read'], token: '${secret('tool')}' } },
      ],
    },
    channels: {
      telegram: { botToken: '${secret('telegram')}', allowFrom: [['${secret('allowed')}']] },
      discord: { accounts: { work: { token: { source: 'env', id: '${secret('reference')}' } } } },
      slack: { botToken_env: '${secret('env')}', bot_token_env: '${secret('env2')}' },
      matrix: { homeserver: 'no address ?access_token=${secret('homeserver')}', accessToken: '${secret('matrix')}' },
    },
    models: { providers: { 'https://me:${secret('provider')}@llm.example.org': { apiKey: '${secret('apiKey')}' } } },
    gateway: { auth: { tokens: [['${secret('nested')}']], token: { value: ['${secret('deep')}'] } } },
    plugins: { entries: { x: { headers: { 'X-Custom': '${secret('header')}' } } } },
    'https://me:${secret('section')}@example.org': {},
  }`,
  '.env': [
    `# OLD_TOKEN=${secret('commented')}`,
    `export DISCORD_TOKEN="${secret('exported')}"`,
    `MISTRAL_API_KEY='${secret('mistral')}'`,
    `GROQ_API_KEY=${secret('groq')} and blanks`,
    `DATABASE_URL=postgres://me:${secret('database')}@db.example.org/x`,
  ].join('\n'),
  'agents/main/agent/auth-profiles.json': `{"profiles": {"a": {"type": "api_key", "key": ${secret('broken-json')}}}}`,
  'agents/away/agent/auth-profiles.json': JSON.stringify({
    profiles: { a: { type: 'oauth', provider: 'x', access: secret('oauth'), refresh: secret('refresh') } },
  }),
  'cron/jobs.json': JSON.stringify({
    jobs: [
      {
        id: 'a',
        agentId: 'main',
        name: 'Report',
        schedule: { kind: 'cron', expr: '0 7 * * *' },
        payload: { message: 'Report' },
        delivery: { channel: 'webhook', to: `https://hooks.example.org/services/${secret('webhook')}` },
      },
      {
        id: 'b',
        agentId: 'main',
        name: 'Other',
        schedule: { kind: 'cron', expr: '*' },
        payload: { message: 'x', token: secret('payload') },
      },
    ],
  }),
  'agents/main/sessions/one.jsonl': `${JSON.stringify({
    type: 'message',
    message: { role: 'user', content: `My word is ${secret('said')}`, timestamp: '2026-02-02T08:00:01Z' },
  })}\n{"type": "message", ${secret('broken-line')}\n`,
  'agents/main/sessions/sessions.json': `{"agent:main:main": ${secret('broken-sessions')}}`,
}
const openfang: Readonly<Record<string, string>> = {
  'config.toml': [
    'default_model = { provider = "openai", model = "gpt", api_key_env = "sk_no_name_',
    secret('key-env'),
    '" }\n',
    `[channels.telegram]\nbot_token_env = "${secret('token-env')}"\n`,
    `[[mcp_servers]]\nname = "x"\nheaders = ["Authorization: Bearer ${secret('mcp')}"]\n`,
  ].join(''),
  'secrets.env': `OPENAI_API_KEY=${secret('openai')}\n`,
  'agents/scout/agent.toml': [
    'name = "scout"',
    '[model]',
    'provider = "openai"',
    'model = "gpt"',
    `api_key = "${secret('model-key')}"`,
    'base_url = "https://llm.example.org/v1"',
    `[[mcp]]\nheaders = { Authorization = "${secret('mcp-header')}" }`,
  ].join('\n'),
  'agents/addressed/agent.toml': `name = "addressed"\n[model]\nbase_url = "https://me:${secret('base-url')}@llm.example.org"\n`,
  'agents/broken/agent.toml': `name = ${secret('broken-toml')}\n`,
  'workflows/review.yaml': `name: review\nsteps:\n  - name: *${secret('alias')}\n`,
  'workflows/tagged.yaml': `name: tagged\nsteps: !<!${secret('tag')}> x\n`,
  'workflows/step.json': JSON.stringify({
    name: 'step',
    steps: [
      {
        name: 'x',
        agent: { name: 'scout' },
        prompt: 'x',
        mode: secret('mode'),
        headers: { 'X-Key': secret('step-header') },
      },
    ],
  }),
  'cron_jobs.json': JSON.stringify([
    {
      job: {
        id: 'c1',
        agent_id: 'scout',
        name: 'x',
        schedule: { kind: 'every', every_secs: 60, token: secret('schedule') },
        action: { kind: secret('action'), headers: { authorization: secret('action-header') } },
        delivery: { kind: 'webhook', url: `https://hooks.example.org/${secret('delivery')}` },
      },
    },
  ]),
  'trigger_jobs.json': JSON.stringify([
    { id: 't1', agent_id: 'scout', pattern: { lifecycle: {}, token: secret('pattern') } },
  ]),
}

async function write(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const path = join(folder, name)
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, file)), { recursive: true })
    await writeFile(join(path, file), text)
  }
  return path
}
const textsOf = async (path: string): Promise<string> =>
  (await Promise.all((await readdir(path)).map((name) => readFile(join(path, name), 'utf8')))).join('\n')

it.each([
  ['openclaw', openclaw],
  ['openfang', openfang],
])('a home of %s has secrets in odd places, and none of them is in what is told of it', async (name, files) => {
  const path = await write(name, files)
  const told: unknown[] = []
  const call = async (method: string, to: string, body?: object) => {
    const answer = await host.json(method, to, body)
    expect(answer.status).toBe(200)
    told.push(answer.body)
    return answer.body
  }
  await call('POST', '/api/migrate/scan', { path })
  await call('POST', '/api/migrate', { source: path, dry_run: true })
  const body = await call('POST', '/api/migrate', { source: path })
  expect(body.agents_imported).toBeGreaterThan(0)
  expect(body.skipped_count).toBeGreaterThan(3)
  await call('POST', '/api/migrate', { source: path })
  for (const to of ['/api/migrate/status', '/api/audit/recent?limit=500', '/api/channels']) await call('GET', to)
  const reports = await textsOf(join(host.home, 'migrations'))
  const all = [JSON.stringify(told), reports, host.log.join('\n')].join('\n')
  expect(all.match(/[^\s"]*.{0,60}canary.{0,20}/g)).toBeNull()
})

it('a manifest that comes over has no secrets', async () => {
  const agents = (await host.json('GET', '/api/agents')).body
  const scout = agents.find((agent: { name: string }) => agent.name === 'scout')
  const detail = JSON.stringify((await host.json('GET', `/api/agents/${scout.id}`)).body)
  expect(detail).toContain('llm.example.org')
  expect(detail).not.toContain('canary')
})

it('what was said in a conversation stays as it was said', async () => {
  const { body } = await host.json('GET', `/api/sessions/search?q=${encodeURIComponent('My word')}`)
  expect(JSON.stringify(body)).toContain(secret('said'))
})
