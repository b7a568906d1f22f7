import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
let host: TestHost
beforeAll(async () => {
  host = await startHost({ plugins: ['audit', 'agents', 'files', 'kv'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

let count = 0
const spawn = async (more = ''): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "agent-${count++}"\n${more}` })).body.agent_id
const detail = async (id: string) => (await host.json('GET', `/api/agents/${id}`)).body
const patch = (id: string, part: string, body: unknown) => host.json('PATCH', `/api/agents/${id}/${part}`, body)

/** One black pixel, and one as a GIF. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const GIF = 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'

describe('PATCH /api/agents/{id}/identity', () => {
  it('takes the names of the interface', async () => {
    const id = await spawn()
    expect(
      await patch(id, 'identity', {
        name: `renamed-${id}`,
        avatar: 'https://example.com/a.png',
        persona: 'Calm and brief.',
      }),
    ).toMatchObject({ status: 200, body: { status: 'ok', agent_id: id } })
    expect(await detail(id)).toMatchObject({
      name: `renamed-${id}`,
      identity: { avatar_url: 'https://example.com/a.png', vibe: 'Calm and brief.' },
    })
  })

  it('takes the names of existing clients, keeps what is not given, and clears what is null', async () => {
    const id = await spawn()
    const all = {
      emoji: '🦊',
      avatar_url: `data:image/png;base64,${PNG}`,
      color: '#ff00aa',
      archetype: 'Scholar',
      vibe: 'dry',
      greeting_style: 'short',
    }
    await patch(id, 'identity', all)
    expect((await detail(id)).identity).toEqual(all)
    await patch(id, 'identity', { color: '#000', emoji: null })
    const { emoji: _, ...rest } = all
    expect((await detail(id)).identity).toEqual({ ...rest, color: '#000' })
  })

  it('an empty text clears a field, and a persona may have several lines', async () => {
    const id = await spawn()
    await patch(id, 'identity', { emoji: '🦊', persona: 'Calm.\nBrief.' })
    await patch(id, 'identity', { emoji: '' })
    expect((await detail(id)).identity).toEqual({ vibe: 'Calm.\nBrief.' })
  })

  it('an avatar that is no address is a sign', async () => {
    const id = await spawn()
    await patch(id, 'identity', { avatar: '🤖' })
    expect((await detail(id)).identity).toEqual({ emoji: '🤖' })
  })

  it.each([
    ['a field that there is not', { emojy: 'x' }],
    ['an unknown field alone', { colour: 'red' }],
    ['a script', { avatar_url: 'javascript:alert(1)' }],
    ['a script for an avatar', { avatar: 'javascript:alert(1)' }],
    ['a page', { avatar_url: 'data:text/html;base64,AAAA' }],
    ['a drawing', { avatar_url: 'data:image/svg+xml;base64,AAAA' }],
    ['bytes that are no image', { avatar_url: 'data:image/png;base64,AAAA' }],
    ['a page that is sent as an image', { avatar: `data:image/gif;base64,${btoa('<script>alert(1)</script>')}` }],
    ['another image than it says', { avatar_url: `data:image/png;base64,${GIF}` }],
    ['a line break in a sign', { emoji: 'a\nb' }],
    ['an escape in an archetype', { archetype: '\u001b[2J' }],
    ['an escape in a persona', { persona: '\u001b[2J' }],
    ['a path', { avatar_url: '/etc/passwd' }],
    ['a colour without #', { color: 'red' }],
    ['a colour with more behind it', { color: '#fff;x' }],
    ['a number', { emoji: 5 }],
    ['a list', { vibe: ['a'] }],
    ['a long emoji', { emoji: 'x'.repeat(33) }],
    ['a long persona', { persona: 'x'.repeat(4097) }],
    ['a long address', { avatar_url: `https://x/${'a'.repeat(3000)}` }],
    ['NUL', { vibe: 'a\0b' }],
    ['half a surrogate pair', { archetype: '\ud800' }],
    ['two names that disagree', { avatar: 'https://a/', avatar_url: 'https://b/' }],
    ['an empty name', { name: '' }],
    ['a long name', { name: 'x'.repeat(257) }],
    ['a good field beside a bad one', { emoji: '🦊', color: 'red' }],
    ['a list for a body', []],
    ['text', 'x'],
    ['null', null],
  ])('%s is 400 and changes nothing', async (_, body) => {
    const id = await spawn()
    const before = await detail(id)
    const answer = await patch(id, 'identity', body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(await detail(id)).toEqual(before)
  })

  it('a name that is taken is 409', async () => {
    const [one, two] = [await spawn(), await spawn()]
    expect((await patch(two, 'identity', { name: (await detail(one)).name, emoji: '🦊' })).status).toBe(409)
    expect((await detail(two)).identity).toEqual({})
  })

  it('is in the audit log, and is there after a restart', async () => {
    await using first = await startHost({ plugins: ['audit', 'agents'] })
    const { agent_id: id } = (await first.json('POST', '/api/agents', { manifest_toml: 'name = "lasting"' })).body
    await first.json('PATCH', `/api/agents/${id}/identity`, { emoji: '🦊' })
    expect((await first.json('GET', `/api/audit/recent?agent_id=${id}`)).body.entries.at(-1)).toMatchObject({
      event_type: 'agent_updated',
      details: 'agent "lasting": changed emoji: identity.emoji from unset to "🦊"',
    })
    await first.stop()
    await using second = await startHost({ plugins: ['audit', 'agents'], home: first.home })
    expect((await second.json('GET', `/api/agents/${id}`)).body.identity).toEqual({ emoji: '🦊' })
  })
})

describe('PATCH /api/agents/{id}/config', () => {
  it('changes all of it in one step', async () => {
    const id = await spawn()
    const { status, body } = await patch(id, 'config', {
      name: `configured-${id}`,
      description: 'd',
      system_prompt: 's',
      emoji: '🦊',
      model: 'gpt-x',
      provider: 'openai',
      api_key_env: 'MY_KEY',
      base_url: 'https://example.com/v1',
      fallback_models: [{ provider: 'groq', model: 'llama' }],
      max_tokens: 100,
      temperature: 1.5,
      web_search_augmentation: 'auto',
    })
    expect([status, body]).toEqual([
      200,
      { status: 'ok', agent_id: id, warnings: ['"web_search_augmentation" is kept and has no effect yet'] },
    ])
    expect(await detail(id)).toMatchObject({
      name: `configured-${id}`,
      description: 'd',
      system_prompt: 's',
      identity: { emoji: '🦊' },
      model: { provider: 'openai', model: 'gpt-x', max_tokens: 100, temperature: 1.5 },
      fallback_models: [{ provider: 'groq', model: 'llama' }],
    })
    expect((await detail(id)).manifest_toml).toMatch(
      /api_key_env = "MY_KEY"[\s\S]*web_search_augmentation|web_search_augmentation[\s\S]*api_key_env = "MY_KEY"/,
    )
    const { entries } = (await host.json('GET', `/api/audit/recent?agent_id=${id}`)).body
    expect(entries).toHaveLength(2)
  })

  it.each([
    ['name', 257],
    ['description', 4097],
    ['system_prompt', 65_537],
  ])('%s of %d characters is 413', async (field, length) => {
    const id = await spawn()
    const answer = await patch(id, 'config', { [field]: 'x'.repeat(length) })
    expect([answer.status, answer.body.error.message]).toEqual([413, expect.stringContaining(field)])
    expect((await patch(id, 'config', { [field]: 'y'.repeat(field === 'name' ? 200 : length - 1) })).status).toBe(200)
  })

  it.each([
    ['a field that there is not', { discription: 'x' }],
    ['a hot temperature', { temperature: 2.1 }],
    ['a cold temperature', { temperature: -0.1 }],
    ['text for a temperature', { temperature: 'hot' }],
    ['no tokens', { max_tokens: 0 }],
    ['half a token', { max_tokens: 1.5 }],
    ['a huge number', { max_tokens: 1e300 }],
    ['a file for an address', { base_url: 'file:///etc/passwd' }],
    ['text for an address', { base_url: 'x' }],
    ['a variable with a space', { api_key_env: 'A B' }],
    ['an empty model', { model: '' }],
    ['fallbacks of text', { fallback_models: ['x'] }],
    ['too many fallbacks', { fallback_models: Array.from({ length: 21 }, () => ({ model: 'x' })) }],
    ['an unknown augmentation', { web_search_augmentation: 'sometimes' }],
    ['null for a name', { name: null }],
    ['a list', []],
    ['a colour', { color: 'red', description: 'not taken' }],
  ])('%s is 400 and changes nothing', async (_, body) => {
    const id = await spawn()
    const before = await detail(id)
    expect((await patch(id, 'config', body)).status).toBe(400)
    expect(await detail(id)).toEqual(before)
  })
})

describe('POST /api/agents/{id}/clone', () => {
  const clone = (id: string, body?: unknown) => host.json('POST', `/api/agents/${id}/clone`, body)

  it('makes an agent by the same rules with a session of its own', async () => {
    const id = await spawn(
      'description = "d"\nworkspaces = { shared = { path = "x", mode = "r" } }\ntools_disabled = false\n[capabilities]\ntools = ["kv_get"]\nmemory_read = ["self.a"]',
    )
    await patch(id, 'identity', { emoji: '🦊' })
    await host.json('PUT', `/api/agents/${id}/mode`, { mode: 'assist' })
    await host.json('PUT', `/api/memory/agents/${id}/kv/secret`, { value: 1 })
    const original = await detail(id)
    const { status, body } = await clone(id)
    expect([status, body]).toEqual([
      201,
      { agent_id: expect.any(String), id: body.agent_id, name: `${original.name}-clone`, warnings: expect.any(Array) },
    ])
    const copy = await detail(body.agent_id)
    expect(copy).toMatchObject({
      state: 'Running',
      description: 'd',
      capabilities: original.capabilities,
      identity: { emoji: '🦊' },
      permission: 'assist',
    })
    expect(copy.session_id).not.toBe(original.session_id)
    expect(copy.manifest_toml).toContain('[workspaces.shared]')
    expect((await host.json('GET', `/api/memory/agents/${body.agent_id}/kv`)).body.kv_pairs).toEqual([])
    expect((await host.json('GET', `/api/audit/recent?agent_id=${body.agent_id}`)).body.entries[0].details).toBe(
      `agent "${body.name}" spawned as a clone of ${id}`,
    )
  })

  it('takes the next free name, also when many are made at once', async () => {
    const id = await spawn()
    const { name } = await detail(id)
    const names = []
    for (let time = 0; time < 3; time++) names.push((await clone(id, {})).body.name)
    expect(names).toEqual([`${name}-clone`, `${name}-clone-2`, `${name}-clone-3`])
    const answers = await Promise.all(Array.from({ length: 5 }, () => clone(id)))
    const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.name)
    expect(new Set(made).size).toBe(made.length)
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true)
  })

  it('with a key it is made once', async () => {
    const id = await spawn()
    const again = () => host.json('POST', `/api/agents/${id}/clone`, {}, { 'idempotency-key': `clone-${id}` })
    const answers = await Promise.all([again(), again(), again()])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(answers.map(({ body }) => body.agent_id)).size).toBe(1)
  })

  it('a long name is cut for the clone', async () => {
    const id = (await host.json('POST', '/api/agents', { manifest_toml: `name = "${'n'.repeat(256)}"` })).body.agent_id
    expect((await clone(id)).body.name).toBe(`${'n'.repeat(250)}-clone`)
  })

  it('may leave out tools and skills', async () => {
    const id = await spawn('skills = ["a"]\ntool_allowlist = ["kv_*"]\n[capabilities]\ntools = ["*"]')
    const { body } = await clone(id, { include_tools: false, include_skills: false })
    expect(await detail(body.agent_id)).toMatchObject({ capabilities: { tools: [] }, skills: [], skills_mode: 'none' })
  })

  it.each([
    ['an empty name', { new_name: '' }, 400],
    ['a name of spaces', { new_name: '  ' }, 400],
    ['a long name', { new_name: 'x'.repeat(257) }, 413],
    ['a number', { new_name: 5 }, 400],
    ['text for a choice', { include_tools: 'no' }, 400],
    ['a list', [], 400],
    ['control characters', { new_name: 'a\nb' }, 400],
  ])('%s is refused and nothing is made', async (_, body, status) => {
    const id = await spawn()
    const before = (await host.json('GET', '/api/agents')).body.length
    expect((await clone(id, body)).status).toBe(status)
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(before)
  })

  it('a name that is taken is 409; an unknown agent 404; no id 400', async () => {
    const id = await spawn()
    expect((await clone(id, { new_name: (await detail(id)).name })).status).toBe(409)
    expect((await clone(nobody)).status).toBe(404)
    expect((await clone('x')).status).toBe(400)
  })
})

describe('PATCH /api/agents/{id} and PUT update', () => {
  it.each(['identity', 'config'])('%s of an unknown agent is 404, of no agent 400', async (part) => {
    expect((await patch(nobody, part, { name: 'x' })).status).toBe(404)
    expect((await patch('x', part, { name: 'x' })).status).toBe(400)
  })

  it('change the name, the temperature and the tags, or the whole manifest', async () => {
    const id = await spawn()
    expect(
      (
        await host.json('PATCH', `/api/agents/${id}`, {
          name: `patched-${id}`,
          temperature: 0.1,
          tags: ['a'],
          max_tokens: 7,
        })
      ).body,
    ).toMatchObject({ status: 'ok', agent_id: id, name: `patched-${id}` })
    expect(await detail(id)).toMatchObject({ model: { temperature: 0.1, max_tokens: 7 }, tags: ['a'] })
    expect(
      (await host.json('PUT', `/api/agents/${id}/update`, { description: 'd', system_prompt: 's', tags: [] })).body,
    ).toEqual({ status: 'updated', agent_id: id })
    expect((await host.json('PATCH', `/api/agents/${id}`, { manifest_toml: `name = "replaced-${id}"` })).status).toBe(
      200,
    )
    expect(await detail(id)).toMatchObject({ name: `replaced-${id}`, description: '', tags: [] })
  })
})

describe('where the conversations of an agent go', () => {
  it('is shown, and passes the outbound rules when it is set', async () => {
    await using host = await startHost({ config: { default_provider: 'builtin' } })
    const { body: made } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "placed"' })
    const config = (body: unknown) => host.json('PATCH', `/api/agents/${made.agent_id}/config`, body)
    const detail = async () => (await host.json('GET', `/api/agents/${made.agent_id}`)).body
    expect((await detail()).model).toMatchObject({ base_url: null, api_key_env: null })
    // A model on this machine is common; what holds the credentials of the machine is never one.
    for (const base_url of [
      'http://169.254.169.254/v1',
      'http://metadata.google.internal/',
      'http://[fd00:ec2::254]/',
      'https://user:password@example.com/v1',
      'http://127.0.0.1:22/',
    ]) {
      expect(await config({ base_url }), base_url).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringContaining('model.base_url: ') } },
      })
      const model = { provider: 'mine', model: 'm', base_url }
      expect((await config({ fallback_models: [model] })).body.error.message).toContain('fallback_models.0.base_url: ')
      const manifest_toml = `name = "other"\n[model]\nbase_url = "${base_url}"\n`
      expect((await host.json('POST', '/api/agents', { manifest_toml })).status).toBe(400)
      expect((await host.json('PATCH', `/api/agents/${made.agent_id}`, { manifest_toml })).status).toBe(400)
    }
    expect((await detail()).model).toMatchObject({ base_url: null })
    const here = 'http://127.0.0.1:11434/v1'
    const fallback = { provider: 'mine', model: 'm', base_url: here, api_key_env: 'MINE' }
    expect((await config({ base_url: here, fallback_models: [fallback] })).status).toBe(200)
    expect(await detail()).toMatchObject({ model: { base_url: here }, fallback_models: [fallback] })
  })
})
