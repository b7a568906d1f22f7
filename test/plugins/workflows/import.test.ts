import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/workflows/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'approvals'],
    database: 'file',
    config: { plugins: { workflows: { max_file_bytes: 1_000 } } },
  })
  await test.spawn('writer')
})
afterAll(() => test[Symbol.asyncDispose]())

const get = async (path: string): Promise<Json> => (await test.request<Json>('GET', path)).body
const listed = async (): Promise<readonly Json[]> => await get('/api/workflows')
const importText = (text: unknown, rest: object = {}) =>
  test.request<Json>('POST', '/api/workflows/import', {
    text: typeof text === 'string' ? text : JSON.stringify(text),
    ...rest,
  })

const stored = {
  id: '7a0d7e9c-40f5-4d5b-8a62-2f2a4f5a0f11',
  name: 'stored',
  description: 'of another service',
  created_at: '2025-01-01T00:00:00Z',
  layout: {},
  steps: [
    {
      name: 'last',
      agent: { name: 'writer' },
      prompt_template: '{{found}}',
      mode: 'Sequential',
      error_mode: { retry: { max_retries: 4, backoff_ms: 2_500, jitter_pct: 10 } },
      depends_on: ['first'],
      session_mode: 'new',
    },
    {
      name: 'first',
      agent: { name: 'writer' },
      mode: { loop: { max_iterations: 2, until: 'x' } },
      output_var: 'found',
    },
    { name: 'first', agent: { name: 'writer' }, mode: 'fan_out', timeout_secs: 5 },
  ],
}

const refusals: readonly (readonly [text: unknown, message: string])[] = [
  ['name = "x\n', 'text: malformed TOML at line 1, column 10'],
  ['{"name": }', 'text: malformed JSON'],
  [{ name: 'x' }, "Missing 'steps' array"],
  [
    { steps: [{ agent_name: 'wrter' }] },
    'step 1 "step": agent_name: there is no agent "wrter"; did you mean "writer"?',
  ],
  [[{ steps: [{ agent_name: 'writer' }] }, { name: 'b', steps: [{}] }], 'workflow "b": step 1 "step": agent_id'],
  [{ steps: [{ name: 't', mode: { transform: { code: 'x' } } }] }, 'step "t": mode: "transform" has no counterpart'],
  [
    {
      steps: [
        { name: 'a', depends_on: ['b'] },
        { name: 'b', depends_on: ['a'] },
      ],
    },
    'depends_on: these steps wait for each other: a, b',
  ],
  [[], 'expected 1 to 500 workflows'],
  ['[1, 2]', 'malformed TOML'],
  ['[{}]', "Missing 'steps' array"],
  [`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`, 'nested deeper than'],
]
describe('an import', () => {
  it('takes what compatible services store, and says what is left out', async () => {
    const { status, body } = await importText([stored, { name: 'other', steps: [{ agent_name: 'writer' }] }])
    expect(status).toBe(200)
    expect(body.workflows).toMatchObject([
      {
        name: 'stored',
        steps: 3,
        warnings: [
          expect.stringContaining('depends_on is left out'),
          'step "last": session_mode is left out',
          'step "last": error_mode.retry.jitter_pct is left out',
        ],
      },
      { name: 'other', steps: 1, warnings: [] },
    ])
    const workflow = await get(`/api/workflows/${body.workflows[0].workflow_id}`)
    expect(workflow.id).not.toBe(stored.id)
    expect(workflow.steps).toMatchObject([
      { name: 'first', mode: 'loop', until: 'x' },
      { name: 'last', prompt: '{{found}}', error_mode: 'retry', max_retries: 4, retry_delay_secs: 3 },
      { name: 'first-2', mode: 'fan_out' },
    ])
  })

  it('takes TOML, and creates nothing when it only checks', async () => {
    const before = (await listed()).length
    const text = 'name = "hello"\n[[steps]]\nagent_name = "writer"\nprompt = "Greet {{input}}"\n'
    const { body } = await importText(text, { check: true })
    expect(body).toEqual({ workflows: [{ workflow_id: null, name: 'hello', steps: 1, warnings: [] }] })
    expect(await listed()).toHaveLength(before)
    expect((await importText(text)).body.workflows[0].workflow_id).toMatch(/^[0-9a-f-]{36}$/)
  })

  it.each(refusals)('of %j is refused, and nothing is created', async (text, message) => {
    const before = (await listed()).length
    const { status, body } = await importText(text)
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)])
    expect(await listed()).toHaveLength(before)
  })
})

const write = async (name: string, text: string): Promise<void> => {
  await mkdir(join(test.home, 'workflows'), { recursive: true })
  await writeFile(join(test.home, 'workflows', name), text)
}
const fileText = (prompt: string, agent = 'writer') =>
  `name = "of a file"\n[[steps]]\nagent_name = "${agent}"\nprompt = "${prompt}"\n`
const ofFile = async (file: string): Promise<Json> => (await listed()).find((row) => row.file === file)
const problemOf = async (name: string): Promise<string | null | undefined> =>
  (await get('/api/workflows/files')).files.find(({ file }: Json) => file === name)?.problem

describe('a file in the folder of workflows', () => {
  it('is a workflow that follows its changes, also those while the daemon was stopped', async () => {
    await write('daily.toml', fileText('One'))
    const { id, problem } = await eventually(async () => {
      const row = await ofFile('daily.toml')
      expect(row).toMatchObject({ name: 'of a file', steps: 1, revision: 1 })
      return row
    })
    expect(problem).toBeNull()

    await write('daily.toml', fileText('Two'))
    await eventually(async () => expect((await get(`/api/workflows/${id}`)).steps[0].prompt).toBe('Two'))

    await test.restart(() => writeFile(join(test.home, 'workflows', 'daily.toml'), fileText('Three')))
    await eventually(async () => expect((await get(`/api/workflows/${id}`)).steps[0].prompt).toBe('Three'))
    await test.restart()
    await eventually(async () => expect(await problemOf('daily.toml')).toBeNull())
    expect(await ofFile('daily.toml')).toMatchObject({ id, revision: 3 })
  })

  it('is changed there only', async () => {
    const { id } = await ofFile('daily.toml')
    for (const [method, body] of [
      ['PUT', { name: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await test.request<Json>(method, `/api/workflows/${id}`, body)
      expect([answer.status, answer.body.error.message]).toEqual([409, expect.stringContaining('workflows/daily.toml')])
    }
  })

  it('that is wrong leaves the last good one in force, and says why in the list and in the log', async () => {
    await write('daily.toml', 'name = "of a file"\n[[steps]]\nprompt = "{{nothing}}"\nagent_name = "writer"\n')
    const message = 'step 1 "step": prompt: there is no variable "nothing" at character 1'
    await eventually(async () => expect((await ofFile('daily.toml')).problem).toBe(message))
    expect((await get(`/api/workflows/${(await ofFile('daily.toml')).id}`)).steps[0].prompt).toBe('Three')
    expect(test.log.filter((text) => text.includes(message))).toHaveLength(1)
  })

  it('that never was right is listed among the files, and comes into force when its agent is there', async () => {
    await write('late.toml', fileText('Late', 'newcomer'))
    await write('broken.toml', 'steps = [')
    await write('large.toml', fileText('x'.repeat(1_000)))
    await eventually(async () => {
      expect(await problemOf('late.toml')).toContain('there is no agent "newcomer"')
      expect(await problemOf('broken.toml')).toContain('malformed TOML at line 1')
      expect(await problemOf('large.toml')).toContain('plugins.workflows.max_file_bytes')
    })
    expect(await ofFile('late.toml')).toBeUndefined()
    await test.spawn('newcomer')
    await eventually(async () => expect(await ofFile('late.toml')).toMatchObject({ steps: 1, problem: null }))
  })

  it('that is gone takes its workflow with it', async () => {
    await rm(join(test.home, 'workflows'), { recursive: true })
    await eventually(async () => expect((await listed()).filter(({ file }) => file !== null)).toEqual([]))
    await write('again.toml', fileText('Again'))
    await eventually(async () => expect(await ofFile('again.toml')).toBeDefined())
  })
})
