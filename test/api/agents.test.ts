import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const plugins = ['audit', 'agents', 'kv']
const nobody = '00000000-0000-4000-8000-000000000000'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const manifest = (name: string, rest = ''): string => `name = ${JSON.stringify(name)}\n${rest}`

let host: TestHost
beforeAll(async () => {
  host = await startHost({ plugins: [...plugins, 'templates'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

async function spawn(name: string, rest = ''): Promise<string> {
  const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: manifest(name, rest) })
  expect(status).toBe(201)
  return body.agent_id
}
const audited = async (): Promise<{ event_type: string; agent_id: string; details: string }[]> =>
  (await host.json('GET', '/api/audit/recent?limit=500')).body.entries

describe('GET /api/agents', () => {
  it('is a bare array of summaries, oldest first', async () => {
    await spawn('list-a')
    await spawn('list-b', '[model]\nprovider = "openai"\nmodel = "gpt-4o"')
    const { status, body } = await host.json('GET', '/api/agents')
    expect(status).toBe(200)
    expect(Array.isArray(body)).toBe(true)
    const names = body.map((agent: { name: string }) => agent.name)
    expect(names.indexOf('list-a')).toBeLessThan(names.indexOf('list-b'))
    const last = body.find((agent: { name: string }) => agent.name === 'list-b')
    expect(last).toEqual({
      id: expect.stringMatching(uuid),
      name: 'list-b',
      state: 'Running',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      model_provider: 'openai',
      model_name: 'gpt-4o',
    })
  })

  it('searches names and descriptions, filters by state, pages', async () => {
    await spawn('filter-one', 'description = "Likes CHEESE"')
    await spawn('filter-two', 'enabled = false')
    const names = async (query: string): Promise<string[]> =>
      (await host.json('GET', `/api/agents?${query}`)).body.map((agent: { name: string }) => agent.name)
    expect(await names('q=cheese')).toEqual(['filter-one'])
    expect(await names('q=FILTER-')).toEqual(['filter-one', 'filter-two'])
    expect(await names('q=filter-&state=Stopped')).toEqual(['filter-two'])
    expect(await names('q=filter-&status=Stopped')).toEqual(['filter-two'])
    expect(await names('q=filter-&limit=1')).toEqual(['filter-one'])
    expect(await names('q=filter-&limit=1&offset=1')).toEqual(['filter-two'])
    expect(await names('offset=9999')).toEqual([])
  })

  it.each(['state=Dead', 'limit=-1', 'limit=x', 'offset=1.5', 'limit=99999999999'])('%s is refused', async (query) => {
    expect((await host.json('GET', `/api/agents?${query}`)).status).toBe(400)
  })
})

describe('POST /api/agents', () => {
  it('answers 201 with agent_id, id and name', async () => {
    const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: manifest('spawned') })
    expect(status).toBe(201)
    expect(body).toEqual({ agent_id: expect.stringMatching(uuid), id: body.agent_id, name: 'spawned', warnings: [] })
  })

  it('takes a template, and a name over that of the manifest', async () => {
    const { status, body } = await host.json('POST', '/api/agents', { template: 'assistant', name: 'helper' })
    expect(status).toBe(201)
    expect(body.name).toBe('helper')
    const detail = await host.json('GET', `/api/agents/${body.agent_id}`)
    expect(detail.body).toMatchObject({ name: 'helper', capabilities: { tools: ['*'] } })
    expect(detail.body.manifest_toml).toContain('name = "helper"')
  })

  it('takes null for what may be left out', async () => {
    const { status, body } = await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "of null"',
      template: null,
      name: null,
      signed_manifest: null,
    })
    expect([status, body.name]).toEqual([201, 'of null'])
    const copy = await host.json('POST', `/api/agents/${body.agent_id}/clone`, { new_name: null })
    expect([copy.status, copy.body.name]).toEqual([201, 'of null-clone'])
  })
  it('keeps unknown keys and tells of them', async () => {
    const { body } = await host.json('POST', '/api/agents', {
      manifest_toml: manifest('with-unknown', 'colour = "red"'),
    })
    expect(body.warnings).toEqual(['unknown key "colour" is kept and has no effect'])
    expect((await host.json('GET', `/api/agents/${body.id}`)).body.manifest_toml).toContain('colour = "red"')
  })

  it('malformed TOML is 400 with line and column', async () => {
    const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "x"\n[model\n' })
    expect(status).toBe(400)
    expect(body.error.code).toBe('invalid_request')
    expect(body.error.message).toMatch(/malformed TOML at line 2, column \d+/)
    expect(body.error.details).toMatchObject({ line: 2, column: expect.any(Number) })
  })

  it.each([
    ['nothing', {}],
    ['an empty manifest and no template', { manifest_toml: '' }],
    ['a number for a manifest', { manifest_toml: 5 }],
    ['null for a manifest', { manifest_toml: null }],
    ['a list', []],
    ['text', 'name = "x"'],
    ['a template with a path', { template: '../../etc/passwd' }],
    ['a key of the wrong type', { manifest_toml: 'name = 5' }],
    ['an empty name', { manifest_toml: 'description = "x"', name: '  ' }],
    ['a name with control characters', { manifest_toml: 'description = "x"', name: 'a\u0000b' }],
    ['a signed manifest', { manifest_toml: 'name = "signed"', signed_manifest: '{}' }],
  ])('%s is 400', async (_, body) => {
    const before = (await host.json('GET', '/api/agents')).body.length
    const answer = await host.json('POST', '/api/agents', body)
    expect(answer.status).toBe(400)
    expect(answer.body.error.code).toBe('invalid_request')
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(before)
  })

  it('an unknown template is 404', async () => {
    const { status, body } = await host.json('POST', '/api/agents', { template: 'no-such' })
    expect([status, body.error.code]).toEqual([404, 'template_not_found'])
  })

  it('a manifest over one megabyte is 413', async () => {
    const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: `# ${'x'.repeat(1_048_576)}` })
    expect([status, body.error.code]).toEqual([413, 'payload_too_large'])
  })

  it('a name that is taken is 409 and says by whom', async () => {
    const id = await spawn('taken')
    const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: manifest('taken') })
    expect([status, body.error.code]).toEqual([409, 'conflict'])
    expect(body.error.details.agent_id).toBe(id)
  })

  it('fifty at once all exist afterwards, each once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        host.json('POST', '/api/agents', { manifest_toml: manifest(`parallel-${n}`) }),
      ),
    )
    expect(answers.map((answer) => answer.status)).toEqual(Array.from({ length: 50 }, () => 201))
    expect(new Set(answers.map((answer) => answer.body.agent_id)).size).toBe(50)
    expect((await host.json('GET', '/api/agents?q=parallel-')).body).toHaveLength(50)
  })

  it('fifty at once under one name make one agent and one audit entry', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => host.json('POST', '/api/agents', { manifest_toml: manifest('only-one') })),
    )
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1)
    expect(answers.filter((answer) => answer.status === 409)).toHaveLength(49)
    expect((await audited()).filter((entry) => entry.details.includes('"only-one"'))).toHaveLength(1)
  })

  it('names in any script are kept as they are', async () => {
    const name = 'Größe 名前 🦊 "q" \\ /'
    const id = await spawn(name)
    expect((await host.json('GET', `/api/agents/${id}`)).body.name).toBe(name)
  })

  it('is in the audit log', async () => {
    const id = await spawn('watched')
    expect(await audited()).toContainEqual(expect.objectContaining({ event_type: 'agent_spawned', agent_id: id }))
  })
})

describe('POST /api/agents/validate', () => {
  const check = async (body: object) => await host.json('POST', '/api/agents/validate', body)

  it('tells every fault with its line and key, and makes nothing', async () => {
    const before = (await host.json('GET', '/api/agents')).body.length
    const toml = manifest('checked', '[model]\ntemperature = 9\nmax_tokens = "many"\n')
    const { status, body } = await check({ manifest_toml: toml })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      valid: false,
      manifest: { name: 'checked' },
      faults: [
        { line: 4, key: 'model.max_tokens' },
        { line: 3, key: 'model.temperature' },
      ],
    })
    expect((await check({ manifest_toml: 'name = "x"\n[model\n' })).body).toMatchObject({
      valid: false,
      manifest: null,
      faults: [{ line: 2, column: expect.any(Number), key: null }],
    })
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(before)
  })

  it('writes values into the text and keeps its comments', async () => {
    const toml = 'name = "a" # short\n[model]\n# warm\ntemperature = 1\nodd = true\n'
    const edits = { 'model.temperature': null, 'model.system_prompt': 'One.\n"Two."', description: 'x' }
    const { body } = await check({ manifest_toml: toml, edits })
    expect(body).toMatchObject({
      valid: true,
      manifest_toml:
        'name = "a" # short\ndescription = "x"\n[model]\n# warm\nodd = true\nsystem_prompt = """\nOne.\n"Two.\\""""\n',
      warnings: ['unknown key "model.odd" is kept and has no effect'],
    })
  })

  it('knows the agent that the manifest is for, and refuses the name of another', async () => {
    const id = await spawn('draft-owner', '[capabilities]\ntools = []\n')
    expect((await check({ manifest_toml: manifest('draft-owner'), agent_id: id })).body.valid).toBe(true)
    expect((await check({ manifest_toml: manifest('draft-owner') })).body.faults).toMatchObject([
      { line: 1, key: 'name', message: expect.stringContaining('exists already') },
    ])
    expect((await check({ manifest_toml: manifest('x'), agent_id: nobody })).status).toBe(404)
    expect((await host.json('GET', `/api/agents/${id}`)).body.capabilities.tools).toEqual([])
  })
})

describe('GET /api/agents/{id}', () => {
  it('has the fields of the interface', async () => {
    const id = await spawn(
      'detailed',
      'description = "d"\ntags = ["t"]\n[model]\nprovider = "p"\nmodel = "m"\nsystem_prompt = "s"\n[capabilities]\ntools = ["kv_get"]\nnetwork = ["example.com"]',
    )
    const { status, body } = await host.json('GET', `/api/agents/${id}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id,
      name: 'detailed',
      state: 'Running',
      session_id: expect.stringMatching(uuid),
      description: 'd',
      tags: ['t'],
      model: { provider: 'p', model: 'm' },
      capabilities: { tools: ['kv_get'], network: ['example.com'] },
      mode: 'Normal',
      system_prompt: 's',
      skills: [],
      skills_mode: 'all',
      mcp_servers: [],
      fallback_models: [],
    })
  })

  it('finds an id written in capitals', async () => {
    const id = await spawn('capitals')
    expect((await host.json('GET', `/api/agents/${id.toUpperCase()}`)).body.id).toBe(id)
  })

  it.each(['GET', 'DELETE'])('%s of what is no UUID is 400, of an unknown one 404', async (method) => {
    const bad = await host.json(method, '/api/agents/not-a-uuid')
    expect([bad.status, bad.body.error.code]).toEqual([400, 'invalid_request'])
    expect(bad.body.error.message).toContain('Invalid agent ID')
    const unknown = await host.json(method, `/api/agents/${nobody}`)
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'agent_not_found'])
  })
})

describe('DELETE /api/agents/{id}', () => {
  it('removes the agent and frees its name', async () => {
    const id = await spawn('short-lived')
    expect(await host.json('DELETE', `/api/agents/${id}`)).toMatchObject({
      status: 200,
      body: { status: 'killed', agent_id: id },
    })
    expect((await host.json('GET', `/api/agents/${id}`)).status).toBe(404)
    expect((await host.json('GET', '/api/agents?q=short-lived')).body).toEqual([])
    expect(await spawn('short-lived')).not.toBe(id)
    expect(await audited()).toContainEqual(expect.objectContaining({ event_type: 'agent_killed', agent_id: id }))
  })

  it('two at once: one kills, the other finds nothing', async () => {
    const id = await spawn('killed-once')
    const answers = await Promise.all([
      host.json('DELETE', `/api/agents/${id}`),
      host.json('DELETE', `/api/agents/${id}`),
    ])
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 404])
    expect(
      (await audited()).filter((entry) => entry.event_type === 'agent_killed' && entry.agent_id === id),
    ).toHaveLength(1)
  })

  it('takes what clients send: a JSON content type with an empty body', async () => {
    const id = await spawn('labelled')
    const headers = { 'content-type': 'application/json' }
    expect((await host.fetch('/api/agents', { headers })).status).toBe(200)
    expect((await host.fetch(`/api/agents/${id}`, { method: 'DELETE', headers })).status).toBe(200)
  })
})

describe('changing an agent', () => {
  it('PUT model changes the model, and the provider when it is given', async () => {
    const id = await spawn('remodelled', '[model]\nprovider = "a"\nmodel = "b"')
    expect((await host.json('PUT', `/api/agents/${id}/model`, { model: 'c' })).body).toEqual({
      status: 'updated',
      model: 'c',
      provider: 'a',
      warnings: [],
    })
    expect((await host.json('PUT', `/api/agents/${id}/model`, { model: 'd', provider: 'e' })).body).toEqual({
      status: 'updated',
      model: 'd',
      provider: 'e',
      warnings: [],
    })
    expect((await host.json('GET', `/api/agents/${id}`)).body.model).toMatchObject({ provider: 'e', model: 'd' })
  })

  it('PUT update changes description, system prompt and tags', async () => {
    const id = await spawn('updated', 'colour = "red"')
    expect(
      (await host.json('PUT', `/api/agents/${id}/update`, { description: 'new', system_prompt: 'p', tags: ['x'] }))
        .body,
    ).toEqual({ status: 'updated', agent_id: id })
    const { body } = await host.json('GET', `/api/agents/${id}`)
    expect(body).toMatchObject({ description: 'new', system_prompt: 'p', tags: ['x'] })
    expect(body.manifest_toml).toContain('colour')
    expect(await audited()).toContainEqual(expect.objectContaining({ event_type: 'agent_updated', agent_id: id }))
  })

  it('PATCH renames, and refuses a name that is taken', async () => {
    const id = await spawn('old-name')
    await spawn('other-name')
    expect((await host.json('PATCH', `/api/agents/${id}`, { name: 'new-name' })).body).toMatchObject({
      status: 'ok',
      agent_id: id,
      name: 'new-name',
    })
    expect((await host.json('PATCH', `/api/agents/${id}`, { name: 'other-name' })).status).toBe(409)
    expect((await host.json('GET', `/api/agents/${id}`)).body.name).toBe('new-name')
    await spawn('old-name')
  })

  it('PATCH replaces the whole manifest', async () => {
    const id = await spawn('replaced', 'description = "a"\nbad_key = 1')
    expect(
      (await host.json('PATCH', `/api/agents/${id}`, { manifest_toml: manifest('replaced', 'tags = ["n"]') })).body
        .warnings,
    ).toEqual([])
    expect((await host.json('GET', `/api/agents/${id}`)).body).toMatchObject({ description: '', tags: ['n'] })
    expect((await host.json('PATCH', `/api/agents/${id}`, { manifest_toml: 'x' })).status).toBe(400)
  })

  it('a manifest that disables the agent stops it, one that enables it starts it', async () => {
    const id = await spawn('switched')
    const state = async (rest: string): Promise<string> => {
      await host.json('PATCH', `/api/agents/${id}`, { manifest_toml: manifest('switched', rest) })
      return (await host.json('GET', `/api/agents/${id}`)).body.state
    }
    expect(await state('enabled = false')).toBe('Stopped')
    expect(await state('enabled = true')).toBe('Running')
  })

  it('changes at the same time are all kept', async () => {
    const id = await spawn('busy')
    await Promise.all([
      host.json('PATCH', `/api/agents/${id}`, { description: 'one' }),
      host.json('PATCH', `/api/agents/${id}`, { tags: ['two'] }),
      host.json('PUT', `/api/agents/${id}/model`, { model: 'three' }),
      host.json('PATCH', `/api/agents/${id}`, { temperature: 1 }),
    ])
    expect((await host.json('GET', `/api/agents/${id}`)).body).toMatchObject({
      description: 'one',
      tags: ['two'],
      model: { model: 'three', temperature: 1 },
    })
  })

  it.each([
    ['PATCH', '', { nam: 'x' }],
    ['PATCH', '', { temperature: 3 }],
    ['PATCH', '', { name: '' }],
    ['PATCH', '', { tags: 'x' }],
    ['PATCH', '', { description: 'x'.repeat(4097) }],
    ['PATCH', '', { manifest_toml: 'name = "a"', name: 'b' }],
    ['PUT', '/model', {}],
    ['PUT', '/model', { model: '' }],
    ['PUT', '/model', { model: 5 }],
    ['PUT', '/model', { model: 'a\u0000b' }],
    ['PUT', '/model', { model: 'x'.repeat(5000) }],
    ['PUT', '/model', { model: 'x', provider: 'a\nb' }],
    ['PATCH', '', { model: 'a\u0000b' }],
    ['PUT', '/update', { descripton: 'x' }],
  ])('%s %s with %j is 400 and changes nothing', async (method, path, body) => {
    const { body: agents } = await host.json('GET', '/api/agents?q=capitals')
    const id = agents[0].id
    const before = (await host.json('GET', `/api/agents/${id}`)).body
    expect((await host.json(method, `/api/agents/${id}${path}`, body)).status).toBe(400)
    expect((await host.json('GET', `/api/agents/${id}`)).body).toEqual(before)
  })

  it.each([
    ['PATCH', '', { name: 'x' }],
    ['PUT', '/model', { model: 'x' }],
    ['PUT', '/update', { tags: [] }],
  ])('%s %s of an unknown agent is 404', async (method, path, body) => {
    expect((await host.json(method, `/api/agents/${nobody}${path}`, body)).body.error.code).toBe('agent_not_found')
    expect((await host.json(method, `/api/agents/x${path}`, body)).status).toBe(400)
  })
})
