import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { textUnlessFeed } from '../support/feed.ts'
import { startHost } from '../support/host.ts'

const canary = 'sk-canary-4f1d0c9b8a7e6d5c'
let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({ config: { log_level: 'debug' } })
})
afterAll(async () => {
  stage.host.defects()
  await stage[Symbol.asyncDispose]()
})

describe('threats: what must not come out', () => {
  it('Secret leakage anywhere', async () => {
    const { host, agent, fake } = stage
    // In the vault, where it goes before the configuration: the one that is sent, and that the provider says back.
    for (const name of ['groq', 'openai'])
      expect((await host.json('POST', `/api/providers/${name}/key`, { api_key: canary })).status).toBe(200)
    fake.script(
      { calls: [{ name: 'kv_set', args: { key: 'x', value: 1 } }] },
      { text: 'noted' },
      { status: 401, body: `{"error":{"message":"Incorrect API key provided: ${canary}"}}` },
    )
    await stage.post(`/api/agents/${agent}/message`, { message: 'hello' })
    await stage.post(`/api/agents/${agent}/message`, { message: 'again' })
    expect(fake.requests.at(-1)?.headers.authorization).toBe(`Bearer ${canary}`)
    const document = (await host.json('GET', '/api/openapi.json')).body as {
      paths: Record<string, Record<string, unknown>>
    }
    const paths = Object.entries(document.paths)
      .filter(([path, methods]) => 'get' in methods && !/\/ws$|\/assets\//.test(path))
      .map(([path]) =>
        path
          .replace('{name}', 'groq')
          .replace(/\{(id|agent_id)\}/, agent)
          .replaceAll(/\{\w+\}/g, 'x'),
      )
    expect(paths.length).toBeGreaterThan(50)
    const leaks: string[] = []
    const encoded = [
      canary,
      Buffer.from(canary).toString('base64').replace(/=+$/, ''),
      Buffer.from(canary).toString('hex'),
      encodeURIComponent(canary),
    ]
    for (const path of paths) {
      const response = await host.fetch(path, { signal: AbortSignal.timeout(10_000) })
      const text = `${JSON.stringify([...response.headers])}${await textUnlessFeed(response)}`
      if (encoded.some((form) => text.includes(form))) leaks.push(path)
    }
    expect(leaks).toEqual([])
    expect(host.log.filter((line) => encoded.some((form) => line.includes(form)))).toEqual([])
    // On disk it stands only encrypted.
    for (const name of await readdir(host.home, { recursive: true })) {
      // The reserve of space is written beside its name, and renamed meanwhile.
      if (name === join('data', 'reserve.new')) continue
      const file = join(host.home, name)
      if (!(await stat(file)).isFile()) continue
      const bytes = await readFile(file)
      if (encoded.some((form) => bytes.includes(form))) leaks.push(name)
    }
    expect(leaks).toEqual([])
  })

  it('Error detail', async () => {
    const { host, agent } = stage
    const answers = await Promise.all([
      host.fetch('/api/nothing/here'),
      host.fetch(`/api/agents/${agent}/files/..%2f..%2fetc%2fpasswd`),
      host.fetch('/api/agents/not-an-id'),
      host.fetch('/api/agents', { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }),
      host.fetch("/api/audit/recent?agent_id=' OR 1=1 --"),
      host.fetch("/api/usage?period=';DROP TABLE usage_call;--"),
      host.fetch('/api/models/%2e%2e%2f%2e%2e%2fetc'),
      host.fetch('/v1/chat/completions', {
        method: 'POST',
        body: '[]',
        headers: { 'content-type': 'application/json' },
      }),
      host.fetch('/api/config/set', {
        method: 'POST',
        body: '{"key":"log_level","value":"loud"}',
        headers: { 'content-type': 'application/json' },
      }),
    ])
    const pages = await Promise.all(
      answers.map(async (answer) => ({ status: answer.status, text: await answer.text() })),
    )
    // A bug tells nothing of itself either: its text is in the log, under the id of the answer.
    await using broken = await startHost({
      plugins: ['system', 'audit', 'agents', fileURLToPath(new URL('../fixtures/plugins/trouble', import.meta.url))],
    })
    for (const way of ['throw', 'reject']) {
      const { status, body } = await broken.json('POST', `/test/trouble/${way}`)
      expect([status, body.error]).toEqual([
        500,
        { code: 'internal_error', message: 'Internal server error', details: {}, request_id: expect.any(String) },
      ])
      expect(broken.log.join('\n')).toContain(body.error.request_id)
      pages.push({ status, text: JSON.stringify(body) })
    }
    expect(broken.defects()).toHaveLength(2)
    for (const { text } of pages) {
      expect(text).not.toMatch(
        /\bat \S+:\d+:\d+|node_modules|\.ts:\d|SQLITE|SELECT |INSERT |sqlite|ECONN|\/(home|root|tmp|usr|work)\//,
      )
      expect(text).not.toContain(host.home)
    }
  })

  it('Process hygiene', async () => {
    const { host } = stage
    const loose: string[] = []
    for (const name of ['.', ...(await readdir(host.home, { recursive: true }))]) {
      const { mode } = await stat(join(host.home, name))
      // The home is closed to others, and so is each file with keys or rows, also when somebody opens the home.
      if ((name === '.' || /\.(db|db-wal|db-shm|key|json|toml|lock|anchor)$/.test(name)) && (mode & 0o077) !== 0)
        loose.push(`${name} ${(mode & 0o777).toString(8)}`)
    }
    expect(loose).toEqual([])
    await writeFile(join(host.home, 'probe'), '')
    expect(process.argv.join(' ')).not.toContain('test-key')
  })

  it('Supply chain', async () => {
    const lock = JSON.parse(await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
      packages: Record<string, { resolved?: string; integrity?: string; link?: boolean; inBundle?: boolean }>
    }
    const entries = Object.entries(lock.packages).filter(([name]) => name !== '')
    expect(entries.length).toBeGreaterThan(50)
    // Every byte that is installed is pinned by its hash; nothing comes from a branch or a plain address.
    expect(
      entries
        .filter(
          ([, { integrity, link, inBundle }]) =>
            link !== true && inBundle !== true && integrity?.startsWith('sha512-') !== true,
        )
        .map(([name]) => name),
    ).toEqual([])
    expect(
      entries
        .filter(([, { resolved }]) => resolved !== undefined && !resolved.startsWith('https://'))
        .map(([name]) => name),
    ).toEqual([])
  })
})
