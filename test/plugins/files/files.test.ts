import { existsSync } from 'node:fs'
import { link, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const plugins = ['audit', 'agents', 'files']
const identity = [
  'SOUL.md',
  'IDENTITY.md',
  'USER.md',
  'TOOLS.md',
  'MEMORY.md',
  'AGENTS.md',
  'BOOTSTRAP.md',
  'HEARTBEAT.md',
]
const nobody = '00000000-0000-4000-8000-000000000000'

let host: TestHost
let agent: string
let other: string
beforeAll(async () => {
  host = await startHost({
    plugins,
    config: { plugins: { files: { max_file_bytes: 100_000, max_upload_bytes: 200_000 } } },
  })
  agent = await spawn('keeper')
  other = await spawn('neighbour')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

async function spawn(name: string, rest = ''): Promise<string> {
  return (await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n${rest}` })).body.agent_id
}
const workspace = (id: string): string => join(host.home, 'data', 'workspaces', id)
const file = (name: string, id = agent): string => `/api/agents/${id}/files/${name}`
const put = (name: string, content: string, id = agent) => host.json('PUT', file(name, id), { content })
const listed = async (id = agent): Promise<{ name: string; exists: boolean; size_bytes: number }[]> =>
  (await host.json('GET', `/api/agents/${id}/files`)).body.files
const details = async (id: string): Promise<string[]> =>
  (await host.json('GET', `/api/audit/recent?limit=500&agent_id=${id}`)).body.entries.map(
    (entry: { details: string }) => entry.details,
  )

describe('a workspace', () => {
  it('is made when it is first used, with the eight identity files', async () => {
    const id = await spawn('fresh')
    expect(existsSync(workspace(id))).toBe(false)
    const files = await listed(id)
    expect((await readdir(workspace(id))).sort()).toEqual([...identity].sort())
    expect(files.map(({ name }) => name)).toEqual(identity)
    expect(files.every(({ exists, size_bytes }) => exists && size_bytes > 0)).toBe(true)
  })

  it('has none of them when the manifest does not want them', async () => {
    const files = await listed(await spawn('bare', 'generate_identity_files = false'))
    expect(files.map(({ exists }) => exists)).toEqual(identity.map(() => false))
  })

  it('is removed with its agent, and nothing else is', async () => {
    const id = await spawn('leaving')
    await Promise.all([listed(id), listed(other)])
    expect(await readdir(join(host.home, 'data', 'workspaces'))).toContain(id)
    await host.json('DELETE', `/api/agents/${id}`)
    expect(await readdir(join(host.home, 'data', 'workspaces'))).not.toContain(id)
    expect(await readdir(join(host.home, 'data', 'workspaces'))).toContain(other)
    expect((await host.json('GET', `/api/agents/${id}/files`)).status).toBe(404)
  })

  it('of a clone has copies of the identity files and nothing else', async () => {
    const id = await spawn('original')
    await put('SOUL.md', '# kept', id)
    await put('private.txt', 'not copied', id)
    const { body } = await host.json('POST', `/api/agents/${id}/clone`, {})
    expect((await host.json('GET', file('SOUL.md', body.agent_id))).body.content).toBe('# kept')
    expect((await listed(body.agent_id)).map(({ name }) => name)).toEqual(identity)
    await put('SOUL.md', '# changed', body.agent_id)
    expect((await host.json('GET', file('SOUL.md', id))).body.content).toBe('# kept')
  })
})

describe('a file', () => {
  it('is written, read, overwritten, listed and deleted, and the audit log tells of each change', async () => {
    expect(await put('notes/today.md', 'first')).toMatchObject({
      status: 200,
      body: { status: 'ok', name: 'notes/today.md', size_bytes: 5, created: true },
    })
    expect((await put('notes/today.md', 'second')).body.created).toBe(false)
    expect((await host.json('GET', file('notes/today.md'))).body).toEqual({
      name: 'notes/today.md',
      content: 'second',
      size_bytes: 6,
      encoding: 'utf-8',
    })
    expect((await listed()).find(({ name }) => name === 'notes/today.md')).toMatchObject({
      exists: true,
      size_bytes: 6,
    })
    expect((await host.json('DELETE', file('notes/today.md'))).body).toEqual({ status: 'ok', name: 'notes/today.md' })
    expect((await host.json('GET', file('notes/today.md'))).status).toBe(404)
    expect((await host.json('DELETE', file('notes/today.md'))).status).toBe(404)
    expect(await details(agent)).toEqual(
      expect.arrayContaining(['write "notes/today.md" (5 bytes)', 'delete "notes/today.md"']),
    )
  })

  it('may hold any bytes', async () => {
    const bytes = Buffer.from([0, 255, 254, 1, 128])
    expect(
      (
        await host.fetch(file('raw.bin'), {
          method: 'PUT',
          headers: { 'content-type': 'application/octet-stream' },
          body: bytes,
        })
      ).status,
    ).toBe(200)
    expect((await host.json('GET', file('raw.bin'))).body).toMatchObject({
      content: bytes.toString('base64'),
      encoding: 'base64',
      size_bytes: 5,
    })
    await host.json('PUT', file('again.bin'), { content: bytes.toString('base64'), encoding: 'base64' })
    const raw = await host.fetch(file('again.bin?raw=true'))
    expect(Buffer.from(await raw.arrayBuffer())).toEqual(bytes)
    expect(raw.headers.get('content-disposition')).toContain('attachment; filename="again.bin"')
    expect(raw.headers.get('content-security-policy')).toContain('sandbox')
    expect(raw.headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('may have a name in any letters, and may be empty', async () => {
    const name = encodeURIComponent('résumé 你好.txt')
    expect((await put(name, '')).status).toBe(200)
    expect((await host.json('GET', file(name))).body).toMatchObject({
      name: 'résumé 你好.txt',
      content: '',
      size_bytes: 0,
    })
  })

  it.each([
    '%2e%2e%2fescape',
    '..%2f..%2f..%2fetc%2fpasswd',
    'a%2f..%2f..%2fb',
    '%2fetc%2fpasswd',
    '..%5c..%5cx',
    '~root%2fx',
    'c%3a%5cx',
  ])('%s leads out: 403', async (name) => {
    for (const [method, body] of [
      ['GET', undefined],
      ['PUT', { content: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await host.json(method, file(name), body)
      expect([method, answer.status, answer.body.error.code]).toEqual([method, 403, 'forbidden'])
    }
  })

  it('a name with a colon is refused for the colon', async () => {
    const answer = await host.json('PUT', file('a%3ab'), { content: 'x' })
    expect([answer.status, answer.body.error.message]).toEqual([400, 'The name of the file has a colon'])
  })

  it.each([
    'a%00b',
    'a%0ab',
    'con',
    'nul.txt',
    'a%252e%252e',
    'a%2f%2fb',
    'a%2f.%2fb',
    'dot.',
    'space%20',
    'e%CC%81',
    'x'.repeat(300),
    'ab:c',
  ])('%s is no name: 400', async (name) => {
    expect((await put(name, 'x')).status).toBe(400)
    expect((await host.json('GET', file(name))).status).toBe(400)
  })

  it('behind a link, or linked from elsewhere, is refused', async () => {
    const secret = join(host.home, 'secret.txt')
    await writeFile(secret, 'CANARY')
    await symlink(secret, join(workspace(agent), 'link.txt'))
    await symlink(host.home, join(workspace(agent), 'out'))
    await link(secret, join(workspace(agent), 'hard.txt'))
    await promisify(execFile)('mkfifo', [join(workspace(agent), 'pipe')])
    for (const name of ['link.txt', 'out/secret.txt', 'hard.txt', 'pipe']) {
      const answers = await Promise.all([host.json('GET', file(name)), put(name, 'x'), host.json('DELETE', file(name))])
      expect([name, answers.map(({ status }) => status)]).toEqual([name, [403, 403, 403]])
    }
    expect(await readFile(secret, 'utf8')).toBe('CANARY')
    expect((await listed()).map(({ name }) => name).filter((name) => /link|out|hard|pipe/.test(name))).toEqual([])
  })

  it('is never that of another agent', async () => {
    await put('mine.txt', 'CANARY')
    expect((await host.json('GET', file('mine.txt', other))).status).toBe(404)
    expect((await listed(other)).map(({ name }) => name)).toEqual(identity)
    for (const name of [`..%2f${agent}%2fmine.txt`, `%2e%2e/${agent}/mine.txt`, `${agent}/mine.txt`]) {
      const response = await host.fetch(file(name, other))
      expect(response.status).toBeGreaterThanOrEqual(400)
      expect(await response.text()).not.toContain('CANARY')
    }
    await symlink(workspace(agent), join(workspace(other), 'next-door'))
    expect((await host.json('GET', file('next-door/mine.txt', other))).status).toBe(403)
    expect((await host.json('DELETE', file('mine.txt', other))).status).toBe(404)
    expect((await host.json('GET', file('mine.txt'))).body.content).toBe('CANARY')
  })

  it('over its limit is 413 and changes nothing', async () => {
    const answer = await put('SOUL.md', 'x'.repeat(32_769))
    expect([answer.status, answer.body.error.details.limit_bytes]).toEqual([413, 32_768])
    expect((await put('SOUL.md', 'x'.repeat(32_768))).status).toBe(200)
    expect((await put('large.txt', 'x'.repeat(100_001))).status).toBe(413)
    expect((await host.json('GET', file('large.txt'))).status).toBe(404)
    await writeFile(join(workspace(agent), 'grown.txt'), 'x'.repeat(100_001))
    expect((await host.json('GET', file('grown.txt'))).status).toBe(413)
  })

  it('is no folder, and no file is one', async () => {
    await mkdir(join(workspace(agent), 'folder'))
    expect((await host.json('GET', file('folder'))).status).toBe(400)
    expect((await host.json('DELETE', file('folder'))).status).toBe(400)
    expect((await put('folder', 'x')).status).toBe(403)
    await put('plain', 'x')
    expect((await put('plain/below', 'x')).status).toBe(403)
  })

  it.each([
    ['no content', {}],
    ['a number', { content: 5 }],
    ['null', { content: null }],
    ['a list', []],
    ['text', 'x'],
    ['half a surrogate pair', { content: '\ud800' }],
    ['base64 that is none', { content: '***', encoding: 'base64' }],
    ['an unknown encoding', { content: 'x', encoding: 'rot13' }],
  ])('%s is 400', async (_, body) => {
    expect((await host.json('PUT', file('refused.txt'), body)).status).toBe(400)
    expect((await host.json('GET', file('refused.txt'))).status).toBe(404)
  })

  it('of an unknown agent is 404, of no agent 400', async () => {
    for (const [id, status] of [
      [nobody, 404],
      ['nobody', 400],
    ] as const) {
      expect((await host.json('GET', `/api/agents/${id}/files`)).status).toBe(status)
      expect((await host.json('GET', file('SOUL.md', id))).status).toBe(status)
      expect((await put('x', 'x', id)).status).toBe(status)
      expect((await host.json('DELETE', file('x', id))).status).toBe(status)
      expect((await host.json('POST', `/api/agents/${id}/upload`)).status).toBe(status)
    }
  })

  it('is whole, also when many write at once', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => put('busy.txt', String(index).repeat(1000))))
    const { content } = (await host.json('GET', file('busy.txt'))).body
    expect(new Set(content.match(/../g)).size).toBeLessThanOrEqual(2)
    expect((await readdir(workspace(agent))).filter((name) => name.endsWith('.part'))).toEqual([])
  })
})

describe('a list of files', () => {
  it('says when there are more', async () => {
    const id = await spawn('many')
    for (let index = 0; index < 5; index++) await put(`z${index}.txt`, 'x', id)
    const { body } = await host.json('GET', `/api/agents/${id}/files?limit=9`)
    expect(body.truncated).toBe(true)
    expect(body.files).toHaveLength(9)
    expect((await host.json('GET', `/api/agents/${id}/files`)).body.truncated).toBe(false)
    expect((await host.json('GET', `/api/agents/${id}/files?limit=0`)).status).toBe(400)
  })
})

it('a workspace is what it was after a restart', async () => {
  await using first = await startHost({ plugins })
  const { agent_id: id } = (await first.json('POST', '/api/agents', { manifest_toml: 'name = "lasting"' })).body
  await first.json('PUT', `/api/agents/${id}/files/kept.txt`, { content: 'kept' })
  const form = new FormData()
  form.set('file', new File(['a,b'], 'table.csv', { type: 'text/csv' }))
  const { file_id: sent } = await (await first.fetch(`/api/agents/${id}/upload`, { method: 'POST', body: form })).json()
  await first.stop()
  await using second = await startHost({ plugins, home: first.home })
  expect((await second.json('GET', `/api/agents/${id}/files/kept.txt`)).body.content).toBe('kept')
  expect(await (await second.fetch(`/api/uploads/${sent}`)).text()).toBe('a,b')
})

it('an agent that is killed while files come and go leaves none, and every answer is a 2xx or a 4xx', async () => {
  await using busy = await startHost({ plugins })
  for (let round = 0; round < 12; round++) {
    const { agent_id: id } = (
      await busy.json('POST', '/api/agents', { manifest_toml: `name = "short-lived-${round}"` })
    ).body
    const work = [
      () => busy.json('PUT', `/api/agents/${id}/files/a/b.txt`, { content: 'x' }),
      () => busy.json('GET', `/api/agents/${id}/files`),
      () => busy.json('GET', `/api/agents/${id}/files/SOUL.md`),
      () => busy.json('DELETE', `/api/agents/${id}/files/SOUL.md`),
      () => busy.fetch(`/api/agents/${id}/upload`, { method: 'POST', body: 'y', headers: { 'x-filename': 'a.txt' } }),
      () => busy.json('POST', `/api/agents/${id}/clone`),
    ]
    work.splice(round % work.length, 0, () => busy.json('DELETE', `/api/agents/${id}`))
    for (const { status } of await Promise.all(work.map((call) => call()))) expect(status).toBeLessThan(500)
  }
  const alive = new Set((await busy.json('GET', '/api/agents')).body.map((agent: { id: string }) => agent.id))
  expect((await readdir(join(busy.home, 'data', 'workspaces'))).filter((name) => !alive.has(name))).toEqual([])
})
