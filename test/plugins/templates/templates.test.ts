import { link, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { root } from '../../architecture/sources.ts'

const names = readdirSync(join(root, 'templates'))
  .map((name) => name.replace(/\.toml$/, ''))
  .toSorted()

let host: TestHost
beforeAll(async () => {
  host = await startHost({ config: { default_provider: 'builtin' } })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})
afterEach(() => rm(join(host.home, 'templates'), { recursive: true, force: true }))

async function write(name: string, toml: string): Promise<string> {
  const folder = join(host.home, 'templates')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${name}.toml`), toml)
  return join(folder, `${name}.toml`)
}
const svc = (...words: string[]): Promise<Answer> => runHere([...words, '--home', host.home])

describe('templates that come with svc', () => {
  it('are the 32 of the interface, listed by name without a problem', async () => {
    const { body } = await host.json('GET', '/api/templates')
    expect(body).toMatchObject({ total: 32, problems: [] })
    expect(body.templates.map(({ name }: Json) => name)).toEqual(names)
  })

  it.each(names)(
    '%s has a prompt that is worth reading, a guide and rights that exist; its agent answers',
    async (name) => {
      const { body } = await host.json('GET', `/api/templates/${name}`)
      const { manifest, guide, tier, category, warnings } = body
      const lines = manifest.model.system_prompt.trim().split('\n').length
      expect({ warnings, inRange: lines >= 8 && lines <= 25, lines }).toMatchObject({ warnings: [], inRange: true })
      expect(guide.match(/^- /gm)).toHaveLength(3)
      expect([category, tier]).not.toContain('')
      expect(manifest.name).toBe(name)
      const tools = new Set((await host.json('GET', '/api/tools')).body.tools)
      const unknown = manifest.capabilities.tools.filter((tool: string) => !tool.includes('*') && !tools.has(tool))
      // It is there when a search provider is configured.
      expect(unknown.filter((tool: string) => tool !== 'web_search')).toEqual([])

      const made = await host.json('POST', '/api/agents', { template: name, name: `test-${name}` })
      expect(made).toMatchObject({ status: 201, body: { name: `test-${name}`, warnings: [] } })
      const said = await host.json('POST', `/api/agents/${made.body.agent_id}/message`, { message: 'echo hello there' })
      expect(said).toMatchObject({ status: 200, body: { response: expect.stringContaining('hello there') } })
    },
  )
})

describe('templates of the home', () => {
  it('add to those that come with svc, and replace one of the same name', async () => {
    const path = await write('coder', 'name = "coder"\ndescription = "Ours"\n[metadata]\ncategory = "own"\n')
    await write('greeter', 'name = "greeter"\n')
    const { body } = await host.json('GET', '/api/templates')
    expect(body.total).toBe(33)
    expect(body.templates.find(({ name }: Json) => name === 'coder')).toEqual({
      name: 'coder',
      description: 'Ours',
      path,
      category: 'own',
      tier: '',
      source: 'local',
      overrides_bundled: true,
    })
    expect((await host.json('POST', '/api/agents', { template: 'greeter' })).body).toMatchObject({ name: 'greeter' })
    await write('greeter', 'name = "greeter"\ndescription = "Edited"\n')
    expect((await host.json('GET', '/api/templates/greeter')).body.description).toBe('Edited')
  })

  it.each([
    ['malformed TOML', 'name = "x"\n[model\n', { line: 2, key: null }],
    ['a wrong type', 'name = "x"\n\n[model]\ntemperature = "warm"\n', { line: 4, key: 'model.temperature' }],
    ['a misspelt key', 'name = "x"\n\n[model]\ntemprature = 1\n', { line: 4, key: 'model.temprature' }],
    ['an unknown key', 'name = "x"\nzzzzzz = 1\n', { line: 2, key: 'zzzzzz' }],
  ])('with %s are named with file, line and key, and stop no others', async (_what, toml, place) => {
    const path = await write('broken', toml)
    const { body } = await host.json('GET', '/api/templates')
    expect(body.total).toBe(32)
    expect(body.problems).toEqual([{ name: 'broken', path, ...place, error: expect.any(String) }])
    const read = await host.json('GET', '/api/templates/broken')
    const refused = {
      status: 409,
      body: { error: { code: 'template_failed', message: expect.stringContaining(`${path}:${place.line}`) } },
    }
    expect(read).toMatchObject(refused)
    expect(await host.json('POST', '/api/agents', { template: 'broken' })).toMatchObject(refused)
    expect((await svc('template', 'list')).stderr).toContain(`${path}:${place.line}`)
  })

  it('are not read through a link: any device may list them', async () => {
    await mkdir(join(host.home, 'templates'))
    await symlink(join(host.home, 'config.toml'), join(host.home, 'templates', 'linked.toml'))
    await writeFile(join(host.home, 'other.toml'), 'name = "other"')
    await link(join(host.home, 'other.toml'), join(host.home, 'templates', 'second-name.toml'))
    for (const name of ['linked', 'second-name']) {
      const read = await host.json('GET', `/api/templates/${name}`)
      expect([read.status, read.body.error.message]).toEqual([
        409,
        expect.stringContaining('is a link, or no plain file'),
      ])
    }
  })

  it('warn of a skill that there is not, and spawn', async () => {
    await write('odd', 'name = "odd"\nskills = ["git-expertt"]\n')
    const made = await host.json('POST', '/api/agents', { template: 'odd' })
    expect(made.status).toBe(201)
    expect(made.body.warnings).toEqual([expect.stringMatching(/"git-expertt".*git-expert/)])
  })

  it('have the skills that were chosen instead of their own, none or all, and none that there is not', async () => {
    const of = async (body: object) => {
      const { status, body: made } = await host.json('POST', '/api/agents', { template: 'researcher', ...body })
      if (status !== 201) return made.error.message
      const { skills, skills_mode: mode } = (await host.json('GET', `/api/agents/${made.agent_id}`)).body
      await host.json('DELETE', `/api/agents/${made.agent_id}`)
      return { skills, mode }
    }
    const two = ['git-expert', 'sql-analyst']
    expect(await of({ name: 'chosen', skills: two })).toEqual({ skills: two, mode: 'allowlist' })
    expect(await of({ name: 'chosen', skills: [] })).toEqual({ skills: [], mode: 'none' })
    expect(await of({ name: 'chosen', skills: ['*'] })).toEqual({ skills: [], mode: 'all' })
    expect(await of({ name: 'chosen', skills: ['git-expertt'] })).toContain('did you mean "git-expert"')
    await svc('agent', 'new', '--template', 'researcher', '--name', 'typed', '--skills', 'git-expert, sql-analyst')
    const agents: Json[] = (await host.json('GET', '/api/agents?q=typed')).body
    expect((await host.json('GET', `/api/agents/${agents[0]?.id}/skills`)).body.assigned).toEqual(two)
  })

  it('do not count as signed, nor do those that came with svc with skills they have not', async () => {
    await using strict = await startHost({ config: { manifest_signing: { policy: 'require' } }, listen: false })
    await mkdir(join(strict.home, 'templates'))
    await writeFile(join(strict.home, 'templates', 'own.toml'), 'name = "own"\n')
    expect((await strict.json('POST', '/api/agents', { template: 'own' })).status).toBe(403)
    expect((await strict.json('POST', '/api/agents', { template: 'coder' })).status).toBe(201)
    const more = (name: string, skills: readonly string[]) =>
      strict.json('POST', '/api/agents', { template: 'coder', name, skills })
    expect((await more('wide', ['interview-prep'])).status).toBe(403)
    expect((await more('narrow', [])).status).toBe(201)
  })
})

it.each([
  ['GET', '/api/templates/..%2Fsecrets', undefined, 400],
  ['GET', '/api/templates/codr', undefined, 404],
  ['POST', '/api/agents', { template: '../x' }, 400],
  ['POST', '/api/agents', { template: 'codr' }, 404],
  ['GET', '/api/profiles/codin', undefined, 404],
] as const)('%s %s %j is %i', async (method, path, body, status) => {
  const answer = await host.json(method, path, body)
  expect(answer.status).toBe(status)
  if (status === 404) expect(answer.body.error.message).toMatch(/did you mean "cod/)
})

it('lists tool profiles with their tier and tools', async () => {
  const { body } = await host.json('GET', '/api/profiles')
  expect(body.profiles).toHaveLength(7)
  expect((await host.json('GET', '/api/profiles/minimal')).body).toMatchObject({
    tier: 'fast',
    tools: ['file_read', 'file_list'],
  })
})

describe('commands', () => {
  it('show what a template may do, and its manifest as it is', async () => {
    const shown = (await svc('template', 'show', 'ops')).stdout
    expect(shown).toMatch(/^ops: Watches one machine[^]*\nprograms {2}uptime, [^]*agent new --template ops`\n$/)
    expect((await svc('template', 'show', 'ops', '--toml')).stdout).toMatch(/^name = "ops"\n/)
    expect((await svc('template', 'list', '--category', 'legal')).stdout).toMatch(/\nlegal-assistant +legal +frontier/)
  })

  it('make an agent from a template', async () => {
    expect((await svc('agent', 'new', '--template', 'planner', '--name', 'pia')).stdout).toMatch(
      /^agent "pia" \(.{36}\) was created/,
    )
    expect(await svc('agent', 'new', '--template', 'planer')).toMatchObject({
      stderr: expect.stringContaining('planner'),
    })
  })

  it('begin: test the provider, choose it and make the first agent', async () => {
    const begun = await svc('init', '--provider', 'builtin', '--template', 'tutor', '--yes')
    expect(begun).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Agents use builtin \/ .*chat tutor`\n$/) })
    const again = await svc('init', '--provider', 'builtin', '--template', 'tutor', '--yes')
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('already') })
  })

  it.each([
    ['an unknown provider', ['--provider', 'openaii'], 'did you mean "openai"'],
    ['a provider without a key', ['--provider', 'groq'], 'groq has no key'],
    ['an unknown template', ['--provider', 'builtin', '--template', 'tutr'], 'tutor'],
  ])('say what is wrong with %s, and make no agent', async (_what, flags, text) => {
    const before = (await host.json('GET', '/api/agents')).body.length
    const answer = await svc('init', '--yes', ...flags)
    expect(answer.code).not.toBe(0)
    expect(answer.stderr).toContain(text)
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(before)
  })
})
