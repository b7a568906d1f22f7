import { link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditDetails, callTool, callToolJson, turnPlugins, useTool } from '../plugin-test.ts'

const plugin = new URL('../../../plugins/files/', import.meta.url)
let test: PluginTest
let agent = ''
const folder = (of = agent): string => join(test.home, 'data', 'workspaces', of)
beforeAll(async () => {
  test = await startPlugin({ plugin, builtIns: turnPlugins })
  agent = await test.spawn('filer')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
})
const call = (tool: string, args: unknown) => callTool(test, agent, tool, args)

it('a file is written, read and listed, through a whole turn', async () => {
  expect(await useTool(test, agent, 'file_write', { path: 'notes/a.txt', content: 'hello\n' })).toContain(
    'Created "notes/a.txt"',
  )
  expect(await useTool(test, agent, 'file_read', { path: './notes/a.txt' })).toBe('hello\n')
  expect((await call('file_write', { path: 'notes/a.txt', content: 'new' })).text).toContain('Replaced')
  expect(await callToolJson(test, agent, 'file_list', { path: 'notes/' })).toEqual({
    entries: [{ name: 'a.txt', type: 'file', size_bytes: 3 }],
    total: 1,
  })
  expect((await callToolJson(test, agent, 'file_list', { path: '.' })).entries).toContainEqual({
    name: 'notes',
    type: 'folder',
  })
  expect((await call('file_read', { path: join(folder(), 'notes/a.txt') })).text).toBe('new')
  expect((await auditDetails(test, 'file_access')).some((line) => line.includes('notes/a.txt'))).toBe(true)
})

it('a folder is made once', async () => {
  expect((await call('create_directory', { path: 'deep/er' })).text).toContain('Created')
  expect((await call('create_directory', { path: 'deep/er' })).text).toContain('there already')
  await call('file_write', { path: 'plain', content: '' })
  expect((await call('create_directory', { path: 'plain/x' })).failed).toBe(true)
})

describe('nothing leads out of the workspace', () => {
  it.each([
    '../x',
    '/etc/passwd',
    'a/../../x',
    '~/x',
    String.raw`a\..\x`,
    'C:/x',
    'a\0b',
    '%2e%2e/x',
    'notes/../../x',
    '.',
    '',
  ])('%j', async (path) => {
    const other = await test.spawn(`other${crypto.randomUUID()}`)
    for (const [tool, args] of [
      ['file_read', { path }],
      ['file_write', { path, content: 'x' }],
      ['create_directory', { path }],
      ['apply_patch', { patch: `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch` }],
    ] as const) {
      expect(await callTool(test, other, tool, args)).toMatchObject({ failed: true })
    }
  })
  it('nor does a link, or the path of another workspace', async () => {
    await mkdir(folder(), { recursive: true })
    await symlink('/etc', join(folder(), 'out'))
    await writeFile(join(test.home, 'secret'), 'hidden')
    await link(join(test.home, 'secret'), join(folder(), 'hard'))
    const other = await test.spawn('neighbour')
    await callTool(test, other, 'file_write', { path: 'mine', content: 'private' })
    for (const path of ['out/passwd', 'hard', `${folder(other)}/mine`])
      expect(await call('file_read', { path })).toMatchObject({ failed: true })
    expect((await call('code_search', { query: 'hidden' })).text).toContain('Nothing contains')
    expect((await call('file_list', { path: 'out' })).failed).toBe(true)
  })
})

it('what is no text is not read, and what is not there is told', async () => {
  await writeFile(join(folder(), 'binary'), Buffer.from([0x89, 0, 0xff]))
  expect((await call('file_read', { path: 'binary' })).text).toContain('not a text file')
  expect((await call('file_read', { path: 'nowhere' })).text).toContain('No file "nowhere"')
  expect((await call('file_list', { path: 'nowhere' })).text).toContain('No folder')
  expect((await call('file_read', { path: 'notes' })).failed).toBe(true)
})

it('a file over the limit is not written', async () => {
  await using small = await startPlugin({
    plugin,
    builtIns: ['audit', 'agents'],
    config: { plugins: { files: { max_file_bytes: 100 } } },
  })
  const one = await small.spawn('small')
  expect(await callTool(small, one, 'file_write', { path: 'a', content: 'x'.repeat(101) })).toMatchObject({
    failed: true,
    text: expect.stringContaining('100'),
  })
  expect((await callTool(small, one, 'file_read', { path: 'a' })).failed).toBe(true)
})

describe('apply_patch', () => {
  it('changes several files', async () => {
    await call('file_write', { path: 'p/one', content: 'a\nb\n' })
    await call('file_write', { path: 'p/two', content: 'x\n' })
    const patch = [
      '*** Begin Patch',
      '*** Update File: p/one',
      '@@',
      ' a',
      '-b',
      '+c',
      '*** Delete File: p/two',
      '*** Add File: p/three',
      '+new',
      '*** End Patch',
    ].join('\n')
    expect((await call('apply_patch', { patch })).text).toBe('Done: changed "p/one", deleted "p/two", added "p/three".')
    expect((await call('file_read', { path: 'p/one' })).text).toBe('a\nc\n')
    expect(
      (await callToolJson(test, agent, 'file_list', { path: 'p' })).entries.map(({ name }: { name: string }) => name),
    ).toEqual(['one', 'three'])
  })
  it('changes nothing when one part does not fit', async () => {
    await call('file_write', { path: 'q', content: 'a\n' })
    const patch = '*** Begin Patch\n*** Update File: q\n-a\n+b\n*** Update File: p/one\n-not there\n+x\n*** End Patch'
    expect(await call('apply_patch', { patch })).toMatchObject({
      failed: true,
      text: expect.stringContaining('not there'),
    })
    expect((await call('file_read', { path: 'q' })).text).toBe('a\n')
  })
})

describe('code_search', () => {
  it('finds a text literally, with or without regard to case', async () => {
    await call('file_write', { path: 's/code.ts', content: 'const a = 1\nfunction (.*) {}\nCONST b\n' })
    await call('file_write', { path: 's/node_modules/x.ts', content: 'const hidden\n' })
    expect((await call('code_search', { query: 'const', path: 's' })).text).toBe(
      's/code.ts:1: const a = 1\ns/code.ts:3: CONST b',
    )
    expect((await call('code_search', { query: 'const', path: 's/code.ts', case_sensitive: true })).text).toBe(
      's/code.ts:1: const a = 1',
    )
    expect((await call('code_search', { query: '(.*)', path: 's' })).text).toBe('s/code.ts:2: function (.*) {}')
    expect((await call('code_search', { query: 'const', path: 's', max_results: 1 })).text).toContain(
      '[stopped at 1 results]',
    )
  })
  // As a regular expression the query would take for ever.
  it('finds nothing for a hostile text', async () => {
    await call('file_write', { path: 'long', content: 'a'.repeat(500_000) })
    expect((await call('code_search', { query: `${'(a+)+'.repeat(20)}$` })).text).toContain('Nothing contains')
  })
})
