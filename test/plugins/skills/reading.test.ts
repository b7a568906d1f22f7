import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import { SkillCatalog } from '../../../plugins/skills/catalog.ts'
import { toManifest } from '../../../plugins/skills/manifest/read.ts'
import { render } from '../../../plugins/skills/prompt.ts'
import type { Json } from '../../support/json.ts'
import { callTool, callToolJson } from '../plugin-test.ts'
import { removeSkill, skillText, startSkills, writeSkill } from './stage.ts'

describe('the files of a skill', () => {
  it('are read in the Agent Skills format, with the keys of other systems', async () => {
    const text = [
      '---',
      'name: pdf-forms',
      'description: >-',
      '  Fills forms.',
      '  Use when a form is named.',
      'license: MIT',
      'compatibility: Needs qpdf',
      'metadata:',
      '  version: 1.0',
      '  author: ada',
      '  tags: pdf, forms',
      'allowed-tools: file_read shell_exec',
      '---',
      '',
      'Read the form first.',
    ].join('\r\n')
    expect(await toManifest('pdf-forms', text, undefined)).toMatchObject({
      name: 'pdf-forms',
      description: 'Fills forms. Use when a form is named.',
      license: 'MIT',
      compatibility: 'Needs qpdf',
      version: '1.0',
      author: 'ada',
      tags: ['pdf', 'forms'],
      needsTools: ['file_read', 'shell_exec'],
      runtime: 'prompt_only',
    })
  })

  it('may be a skill.toml with tools, beside a SKILL.md with the text', async () => {
    const toml = `
prompt_context = "unused beside a text"
[skill]
name = "sums"
version = "2.0.0"
[runtime]
type = "python"
entry = "run.py"
[[tools.provided]]
name = "add"
description = "Adds"
input_schema = { properties = { a = { type = "number" } } }
[requirements]
tools = ["file_read"]
capabilities = ["network:api.example.org", "files:read"]
[config.SUMS_KEY]
description = "A key"
required = true
`
    expect(await toManifest('sums', skillText('sums'), toml)).toMatchObject({
      version: '2.0.0',
      description: 'Helps with sums.',
      runtime: 'python',
      entry: 'run.py',
      tools: [{ name: 'add', inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }],
      permissions: ['env:SUMS_KEY', 'files:read', 'network:api.example.org'],
      variables: [{ name: 'SUMS_KEY', env: 'SUMS_KEY', required: true }],
      text: { file: 'SKILL.md' },
    })
  })

  it('may have keys of other systems in the front matter, which are told, and the table of a hub', async () => {
    const text = '---\nname: x\ndescription: d\nlicence: MIT\nmodel: large\n---\nDo it.\n'
    const source = '[skill]\nname = "x"\n[source]\ntype = "claw_hub"\nslug = "x"\n'
    expect((await toManifest('x', text, source)).warnings).toEqual([
      'SKILL.md:4: licence: is unknown and has no effect; did you mean "license"?',
      'SKILL.md:5: model: is unknown and has no effect',
    ])
    expect((await toManifest('x', skillText('x'), source)).warnings).toEqual([])
  })

  const toml = (rest: string, head = 'name = "x"\ndescription = "d"'): string => `[skill]\n${head}\n${rest}`
  it.each([
    [
      'a package that svc does not have for skills',
      skillText('x'),
      '[skill]\nname = "x"\n[runtime]\ntype = "node"\nentry = "run.mjs"\npackages = ["left-pad"]\n',
      'skill.toml:6: runtime.packages.0: must be of js-yaml, unpdf',
    ],
    [
      'packages for Python',
      skillText('x'),
      '[skill]\nname = "x"\n[runtime]\ntype = "python"\npackages = ["js-yaml"]\nentry = "run.py"\n',
      'skill.toml:5: runtime.packages: are for programs of Node',
    ],
    ['nothing', undefined, undefined, 'SKILL.md: is missing, and so is skill.toml'],
    ['no front matter', '# x\n', undefined, 'SKILL.md:1: must begin with YAML between two lines'],
    ['no name', '---\ndescription: d\n---\n', undefined, 'SKILL.md:2: name: is missing'],
    ['another name', skillText('y'), undefined, 'name: is "y", but the folder is "x"'],
    ['a name in capitals', '---\nname: X\ndescription: d\n---\n', undefined, 'SKILL.md:2: name: must be 1 to 64'],
    [
      'an empty description',
      '---\nname: x\nlicense: MIT\ndescription: ""\n---\n',
      undefined,
      'SKILL.md:4: description: must not be empty',
    ],
    [
      'a description that is too long',
      `---\nname: x\ndescription: ${'d'.repeat(1025)}\n---\n`,
      undefined,
      'SKILL.md:3: description: at most 1024',
    ],
    [
      'a description that is a list',
      '---\nname: x\ndescription: [a]\n---\n',
      undefined,
      'SKILL.md:3: description: must be a text',
    ],
    ['YAML with an unquoted colon', '---\nname: x\ndescription: a: b\n---\n', undefined, 'SKILL.md:3: bad indentation'],
    ['an alias of YAML', '---\nname: &a x\ndescription: *a\n---\n', undefined, 'SKILL.md:3: '],
    [
      'deep YAML',
      `---\nname: x\ndescription: d\nmetadata: ${'['.repeat(50)}${']'.repeat(50)}\n---\n`,
      undefined,
      'SKILL.md:4: ',
    ],
    ['broken TOML', undefined, '[skill]\nname = \n', 'skill.toml:2: '],
    [
      'a misspelt key',
      undefined,
      '[skill]\nname = "x"\ndescription = "d"\nlicence = "MIT"\n',
      'skill.toml:4: skill.licence: is unknown; did you mean "skill.license"?',
    ],
    [
      'a key of the table skill outside of it',
      undefined,
      'name = "x"\n[skill]\nname = "x"\ndescription = "d"\n',
      'skill.toml:1: name: belongs under [skill]',
    ],
    [
      'a misspelt table',
      undefined,
      '[skill]\nname = "x"\ndescription = "d"\n[requirement]\ntools = []\n',
      'skill.toml:4: requirement: is unknown; did you mean "requirements"?',
    ],
    [
      'a misspelt key of a tool',
      undefined,
      '[skill]\nname = "x"\ndescription = "d"\n[runtime]\ntype = "python"\nentry = "a.py"\n' +
        '[[tools.provided]]\nname = "a"\ndescription = "b"\ninput_shema = { x = 1 }\n',
      'skill.toml:10: tools.provided.input_shema: is unknown; did you mean "tools.provided.input_schema"?',
    ],
    [
      'an unknown runtime',
      undefined,
      toml('[runtime]\ntype = "ruby"\nentry = "x.rb"'),
      'skill.toml:5: runtime.type: must be one of prompt_only, python',
    ],
    ['a runtime without a file', undefined, toml('[runtime]\ntype = "python"'), 'skill.toml:4: runtime: needs entry'],
    [
      'a file outside',
      undefined,
      toml('[runtime]\ntype = "python"\nentry = "../x.py"'),
      'skill.toml:6: runtime.entry: must be a file in the folder',
    ],
    [
      'tools without a runtime',
      undefined,
      toml('[[tools.provided]]\nname = "a"\ndescription = "b"'),
      'skill.toml:4: tools.provided: tools need a runtime',
    ],
    [
      'a name of a tool in capitals',
      undefined,
      toml('[runtime]\ntype = "node"\nentry = "a.js"\n[[tools.provided]]\nname = "A"\ndescription = "b"'),
      'skill.toml:8: tools.provided.0.name: must be snake_case',
    ],
    [
      'a permission that does not exist',
      undefined,
      toml('[requirements]\ncapabilities = ["ShellExec(*)"]'),
      'skill.toml:5: requirements.capabilities.0: must be network:<host>',
    ],
    [
      'files without the permission',
      undefined,
      toml(
        '[runtime]\ntype = "node"\nentry = "a.js"\n[[tools.provided]]\nname = "a"\ndescription = "b"\nfiles = ["path"]',
      ),
      'needs files:read',
    ],
    ['two names', skillText('x'), '[skill]\nname = "y"\n', 'skill.toml: skill.name: is "y", but SKILL.md says "x"'],
  ])('with %s are refused with the place', async (_what, text, manifest, message) => {
    await expect(toManifest('x', text, manifest)).rejects.toThrow(message)
  })
})

describe('a catalog', () => {
  let home: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-skills-'))
    return () => rm(home, { recursive: true, force: true })
  })
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), text)
  }
  const open = (disabled: readonly string[] = []): SkillCatalog =>
    new SkillCatalog({
      roots: { bundled: join(home, 'bundled'), local: join(home, 'local') },
      disabled: () => disabled,
      changed: () => undefined,
    })

  it('has those of the home in place of those that come with svc, and the bundled one back when it goes', async () => {
    await write('bundled/one/SKILL.md', skillText('one', 'Bundled.'))
    await write('bundled/two/SKILL.md', skillText('two'))
    await write('local/one/SKILL.md', skillText('one', 'Own.'))
    const catalog = open(['two'])
    await catalog.refresh()
    expect(catalog.all.map(({ name, description, origin }) => [name, description, origin])).toEqual([
      ['one', 'Own.', 'local'],
      ['two', 'Helps with two.', 'bundled'],
    ])
    expect(catalog.enabled.map(({ name }) => name)).toEqual(['one'])
    expect(catalog.isBundled('one')).toBe(true)
    await rm(join(home, 'local/one'), { recursive: true })
    await catalog.refresh()
    expect(catalog.require('one').description).toBe('Bundled.')
  })

  it('keeps a bundled skill in force while the one that overrides it is broken, and names the place', async () => {
    await write('bundled/one/SKILL.md', skillText('one', 'Bundled.'))
    await write('local/one/SKILL.md', '---\nname: one\n---\n')
    await write('local/good/SKILL.md', skillText('good'))
    const catalog = open()
    await catalog.refresh()
    expect(catalog.all.map(({ name }) => name)).toEqual(['good', 'one'])
    expect(catalog.bad).toMatchObject([{ name: 'one', problem: { file: 'SKILL.md', line: 2, key: 'description' } }])
  })
})

describe('a catalog that is told of what is not so', () => {
  it('uses no folder that is a link, and names what is switched off and not there', async () => {
    await using test = await startSkills({
      config: { plugins: { skills: { disabled: ['tidse', '../x', 'linked'] } } } as never,
    })
    await writeSkill(test, 'tides', { 'SKILL.md': skillText('tides') })
    const elsewhere = await mkdtemp(join(tmpdir(), 'svc-skills-'))
    try {
      await writeFile(join(elsewhere, 'SKILL.md'), skillText('linked'))
      await symlink(elsewhere, join(test.home, 'skills', 'linked'))
      const { body } = await test.request<Json>('GET', '/api/skills')
      expect(body.skills.map(({ name }: Json) => name)).not.toContain('linked')
      expect(body.problems).toMatchObject([{ name: 'linked', error: expect.stringContaining('is a link') }])
      const warnings = [
        'plugins.skills.disabled: there is no skill "tidse"; did you mean "tides"?',
        'plugins.skills.disabled: there is no skill "../x"',
      ]
      const { config_warnings: shown } = (await test.request<Json>('GET', '/api/health/detail')).body
      for (const warning of warnings) {
        expect(shown).toContain(`disabled skills: ${warning}`)
        expect(test.log.filter((line) => line.includes(warning.slice(0, 50)))).not.toEqual([])
      }
    } finally {
      await rm(elsewhere, { recursive: true, force: true })
    }
  })
})

describe('the part of the prompt', () => {
  const skills = Array.from({ length: 20 }, (_, at) => ({ name: `skill-${at}`, description: 'd'.repeat(200) }))
  it('has descriptions in full, cut, or names alone, as there is room', () => {
    expect(render([], 1000)).toBe('')
    expect(render(skills, 10_000)).toContain(`- skill-3: ${'d'.repeat(200)}\n`)
    const cut = render(skills, 2_000)
    expect(cut).toMatch(/\n- skill-3: d{40,90}…\n/)
    const names = render(skills, 200)
    expect(names).toContain('\n- skill-3\n')
    expect(names).toMatch(/There are \d+ more: find them with skill_list\.$/)
  })
})

describe('an agent', () => {
  let test: PluginTest
  beforeAll(async () => {
    test = await startSkills()
  })
  afterAll(() => test[Symbol.asyncDispose]())
  const prompt = async (id: string): Promise<string> => {
    await test.say(id, 'Hello', 'Hello.')
    return test.model.requests.at(-1)?.system ?? ''
  }

  it('sees an added, edited and removed skill on its next turn, and reads its text when it needs it', async () => {
    const id = await test.spawn('reader', '[model]\nsystem_prompt = "You read."\n[capabilities]\ntools = ["*"]\n')
    await writeSkill(test, 'tides', {
      'SKILL.md': skillText('tides', 'Knows tides.', 'The moon.\n'),
      'ref/a.md': 'A table.',
    })
    expect(await prompt(id)).toMatch(/^You read\.\n\n# Skills\n[\s\S]*\n- tides: Knows tides\./)
    expect(await callTool(test, id, 'skill_describe', { name: 'tides' })).toEqual({
      failed: false,
      text: 'The moon.\n\nFiles, for skill_read_file:\n- ref/a.md',
    })
    expect(await callTool(test, id, 'skill_read_file', { skill: 'tides', path: 'ref/a.md' })).toMatchObject({
      text: 'A table.',
    })
    await writeSkill(test, 'tides', { 'SKILL.md': skillText('tides', 'Knows all tides.', 'Moon and sun.\n') })
    expect(await prompt(id)).toContain('- tides: Knows all tides.')
    expect(await callTool(test, id, 'skill_describe', { name: 'tides' })).toMatchObject({
      text: expect.stringContaining('Moon and sun.'),
    })
    await removeSkill(test, 'tides')
    expect(await prompt(id)).not.toContain('tides')
  })

  it('has only the skills of its list, and none of them in its prompt without the tool to read them', async () => {
    await writeSkill(test, 'one')
    await writeSkill(test, 'two')
    const id = await test.spawn('narrow')
    const { body } = await test.request<Json>('PUT', `/api/agents/${id}/skills`, { skills: ['one'] })
    expect(body).toMatchObject({ skills: ['one'] })
    expect(await test.request('PUT', `/api/agents/${id}/skills`, { skills: ['tow'] })).toMatchObject({ status: 400 })
    const shown = await prompt(id)
    expect(shown).toContain('- one: ')
    expect(shown).not.toContain('- two: ')
    expect(await callToolJson(test, id, 'skill_list')).toEqual({
      skills: [{ name: 'one', description: 'Helps with one.' }],
      total: 1,
    })
    expect(await callTool(test, id, 'skill_describe', { name: 'two' })).toMatchObject({ failed: true })
    await test.request('PUT', `/api/agents/${id}/skills`, { skills: [], mode: 'none' })
    expect(await prompt(id)).not.toContain('# Skills')
    const other = await test.spawn('toolless', '[capabilities]\ntools = ["file_read"]\n')
    expect(await prompt(other)).not.toContain('# Skills')
  })

  it('keeps its set of skills in mode Stable', async () => {
    await writeSkill(test, 'before')
    const id = await test.spawn('stable')
    await test.request('PUT', `/api/agents/${id}/mode`, { mode: 'Stable' })
    await writeSkill(test, 'after')
    const shown = await prompt(id)
    expect(shown).toContain('- before: ')
    expect(shown).not.toContain('- after: ')
  })

  it('reads no file outside the folder of a skill', async () => {
    const folder = await writeSkill(test, 'closed', {
      'SKILL.md': skillText('closed'),
      'data.bin': Buffer.from([0xff, 0xfe]),
    })
    await symlink(join(test.home, 'config.toml'), join(folder, 'link'))
    const id = await test.spawn('nosy')
    const read = (path: string) => callTool(test, id, 'skill_read_file', { skill: 'closed', path })
    await writeSkill(test, 'closed', { 'long.md': 'x'.repeat(262_145) })
    expect(await read('long.md')).toMatchObject({ failed: true, text: expect.stringContaining('read_file_bytes') })
    expect(await read('../one/SKILL.md')).toMatchObject({ failed: true, text: expect.stringContaining('".."') })
    expect(await read('link')).toMatchObject({ failed: true, text: expect.stringContaining('leads out of the folder') })
    expect(await read('/etc/hostname')).toMatchObject({ failed: true })
    expect(await read('none.md')).toMatchObject({ failed: true, text: expect.stringContaining('has no file') })
    await writeSkill(test, 'closed', { '.env': 'KEY=1', 'a.md': 'A', 'b\n- c.md': 'B', 'd\u202e.md': 'D' })
    await link(join(folder, 'a.md'), join(folder, 'second.md'))
    expect(await read('.env')).toMatchObject({ failed: true, text: expect.stringContaining('has no file') })
    expect(await callTool(test, id, 'skill_describe', { name: 'closed' })).toMatchObject({
      text: expect.stringMatching(/Files, for skill_read_file:\n- data\.bin\n- long\.md$/),
    })
    expect(await read('data.bin')).toMatchObject({ failed: true, text: expect.stringContaining('is no text') })
  })

  it('is listed its skills by the API, with what is wrong with others', async () => {
    await writeSkill(test, 'broken', { 'SKILL.md': '---\nname: broken\n---\n' })
    await writeSkill(test, 'good', { 'SKILL.md': skillText('good', 'Is good.', 'Body.') })
    await writeSkill(test, 'turned', { 'SKILL.md': skillText('turned', 'Is \u202e\u2066good\u{e0041}.', 'Body.') })
    const { body } = await test.request<Json>('GET', '/api/skills')
    expect(body.skills).toContainEqual(
      expect.objectContaining({ name: 'good', bundled: false, runtime: 'prompt_only', enabled: true }),
    )
    expect(body.skills).toContainEqual(expect.objectContaining({ name: 'turned', description: 'Is good.' }))
    expect(body.problems).toMatchObject([{ name: 'broken', file: 'SKILL.md', line: 2, key: 'description' }])
    expect(test.log.some((line) => line.includes('SKILL.md:2: description: is missing'))).toBe(true)
    expect(await test.request('GET', '/api/skills/good')).toMatchObject({ status: 200, body: { text: 'Body.' } })
    expect(await test.request('GET', '/api/skills/goood')).toMatchObject({ status: 404 })
    expect(await test.request('GET', '/api/skills/broken')).toMatchObject({ status: 409 })
    expect(await test.metrics('svc_skill_problems')).toEqual(new Map([['svc_skill_problems', 1]]))
    await removeSkill(test, 'broken')
    expect(await test.request('POST', '/api/skills/reload')).toMatchObject({
      body: { status: 'reloaded', problems: [] },
    })
  })
})
