import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let writer = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/workflows/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'approvals'],
    database: 'file',
    config: {
      plugins: {
        workflows: { max_steps: 6, max_iterations: 10, max_prompt_chars: 200, max_workflows: 40, kept_revisions: 2 },
      },
    },
  })
  writer = await test.spawn('writer')
  await test.spawn('editor')
})
afterAll(() => test[Symbol.asyncDispose]())

const create = (body: unknown) => test.request<Json>('POST', '/api/workflows', body)
const created = async (...steps: unknown[]): Promise<string> => {
  const { status, body } = await create({ name: 'a workflow', description: 'of a test', steps })
  expect([status, body]).toEqual([201, { workflow_id: expect.stringMatching(/^[0-9a-f-]{36}$/) }])
  return body.workflow_id
}
const read = async (id: string): Promise<Json> => (await test.request<Json>('GET', `/api/workflows/${id}`)).body
const step = (fields: object = {}) => ({ name: 'one', agent_name: 'writer', prompt: '{{input}}', ...fields })

describe('a workflow', () => {
  it('is answered as it was created, listed with the number of its steps, changed in parts and removed', async () => {
    const steps = [
      step({ name: 'draft', output_var: 'draft', timeout_secs: 30, error_mode: 'retry', max_retries: 2 }),
      {
        name: 'edit',
        agent_id: writer,
        prompt: 'Shorten {{draft}} \\{{draft}}',
        mode: 'conditional',
        condition: 'yes',
      },
      { name: 'polish', agent_name: 'editor', mode: 'loop', max_iterations: 3, until: '{{ length(output) < 9 }}' },
    ]
    const id = await created(...steps)
    const first = await read(id)
    expect(first).toMatchObject({ id, name: 'a workflow', description: 'of a test', steps, total_timeout_secs: 3600 })
    expect(first.steps[2]).toMatchObject({ prompt: '{{input}}', error_mode: 'fail', timeout_secs: 120, max_retries: 3 })

    const { body: list } = await test.request<Json>('GET', '/api/workflows')
    expect(list).toMatchObject([{ id, name: 'a workflow', description: 'of a test', steps: 3, file: null }])
    expect(list[0].created_at).toBe(first.created_at)

    const put = (body: unknown) => test.request<Json>('PUT', `/api/workflows/${id}`, body)
    expect((await put({ name: 'renamed' })).body).toEqual({ status: 'updated', workflow_id: id })
    expect(await read(id)).toMatchObject({ name: 'renamed', description: 'of a test', steps, revision: 2 })
    expect((await put({ ...(await read(id)), steps: [step()] })).status).toBe(200)
    expect((await read(id)).steps).toHaveLength(1)
    expect((await put({ steps: [step({ agent_name: 'writr' })] })).status).toBe(400)
    await put(await read(id))
    expect(await read(id)).toMatchObject({ revision: 3, created_at: first.created_at })
    expect(await read(`${id}?revision=2`)).toMatchObject({ revision: 2, name: 'renamed', steps })
    for (const revision of [1, 4])
      expect((await test.request('GET', `/api/workflows/${id}?revision=${revision}`)).status).toBe(404)

    const removed = await test.request('DELETE', `/api/workflows/${id}`)
    expect([removed.status, removed.body]).toEqual([200, { status: 'removed', workflow_id: id }])
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect((await test.request(method, `/api/workflows/${id}`, method === 'PUT' ? {} : undefined)).status).toBe(404)
    expect(await auditDetails(test, 'workflow_changed')).toEqual([
      `workflow ${id} "renamed" deleted`,
      expect.stringContaining(`workflow ${id} "renamed" updated: 1 step: steps from [{"name":"draft",`),
      `workflow ${id} "renamed" updated: 3 steps: name from "a workflow" to "renamed"`,
      `workflow ${id} "a workflow" created: 3 steps`,
    ])
  })
})

describe('what is left out', () => {
  it('has the defaults of the interface', async () => {
    const { body } = await create({ steps: [{ agent_name: 'writer' }, { agent_name: 'writer' }] })
    expect(await read(body.workflow_id)).toMatchObject({
      name: 'unnamed',
      description: '',
      steps: [
        {
          name: 'step',
          type: 'agent',
          prompt: '{{input}}',
          mode: 'sequential',
          timeout_secs: 120,
          error_mode: 'fail',
          max_retries: 3,
          condition: '',
          max_iterations: 5,
          until: '',
        },
        { name: 'step-2' },
      ],
    })
  })
})

describe('a definition', () => {
  it('is taken in the form that compatible services store', async () => {
    const id = await created(
      { name: 'a', agent: { id: writer }, prompt_template: 'Hi {{input}}', mode: { conditional: { condition: 'x' } } },
      { name: 'b', agent: { name: 'editor' }, mode: { loop: { max_iterations: 2, until: 'done' } } },
      { name: 'c', agent: { name: 'editor' }, error_mode: { retry: { max_retries: 1 } }, output_var: null },
    )
    expect((await read(id)).steps).toMatchObject([
      { agent_id: writer, prompt: 'Hi {{input}}', mode: 'conditional', condition: 'x' },
      { agent_name: 'editor', mode: 'loop', max_iterations: 2, until: 'done' },
      { error_mode: 'retry', max_retries: 1 },
    ])
  })

  it('is created once for an Idempotency-Key', async () => {
    const send = () =>
      test.request<Json>('POST', '/api/workflows', { name: 'once', steps: [step()] }, { 'idempotency-key': 'w1' })
    const [first, second] = [await send(), await send()]
    expect(second.body).toEqual(first.body)
    const { body } = await test.request<Json>('GET', '/api/workflows')
    expect(body.filter(({ name }: Json) => name === 'once')).toHaveLength(1)
  })

  it('survives a restart', async () => {
    const id = await created(step({ name: 'kept' }))
    await test.restart()
    expect((await read(id)).steps).toMatchObject([{ name: 'kept', agent_name: 'writer' }])
  })
})

describe('an agent', () => {
  it('lists and describes workflows, without what others are asked', async () => {
    const id = await created(step({ name: 'asks', prompt: 'a private prompt', output_var: 'x' }))
    await test.request('PUT', `/api/workflows/${id}`, { name: 'for agents', run_by: ['writer'] })
    const list = await callToolJson(test, writer, 'workflow_list')
    expect(list.workflows).toContainEqual({ id, name: 'for agents', description: 'of a test', steps: 1 })
    const described = await callTool(test, writer, 'workflow_describe', { workflow_id: 'for agents' })
    expect(JSON.parse(described.text)).toMatchObject({
      id,
      steps: [{ name: 'asks', type: 'agent', mode: 'sequential', agent: { name: 'writer' }, output_var: 'x' }],
    })
    expect(described.text).not.toContain('private')
    expect(await callTool(test, writer, 'workflow_describe', { workflow_id: 'for agent' })).toEqual({
      failed: true,
      text: expect.stringContaining('There is no workflow "for agent" that you may run; did you mean "for agents"?'),
    })
  })
})

describe('a rehearsal', () => {
  it('says who would do what with which model, at which cost, and what would ask a person', async () => {
    const manifest = (rest: string) => `[model]\nprovider = "openai"\nmodel = "gpt-4o"\nmax_tokens = 1000\n${rest}`
    await test.spawn('payer', manifest('[capabilities]\ntools = ["*"]\nshell = ["*"]\n'))
    const id = await created(step({ name: 'a', output_var: 'x', error_mode: 'retry', max_retries: 2 }), {
      name: 'b',
      agent_name: 'payer',
      prompt: '{{x}} {{input}}',
      mode: 'loop',
      max_iterations: 4,
    })
    await test.request('PUT', `/api/workflows/${id}`, { name: 'rehearsed' })
    const { status, body } = await test.request<Json>('POST', `/api/workflows/${id}/dry-run`, { input: 'cats' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ workflow_id: id, name: 'rehearsed', variables: ['x'], needs_approval: [] })
    expect(body.steps).toMatchObject([
      {
        name: 'a',
        agent_name: 'writer',
        most_calls: 3,
        variables: ['input'],
        output_var: 'x',
        text: expect.anything(),
      },
      { name: 'b', agent_name: 'payer', most_calls: 4, variables: ['x', 'input'] },
    ])
    expect(body.steps[0].model).toMatch(/^\S+\/\S+$/)
    expect(body.steps.map(({ may_ask_for: names }: Json) => names)).toEqual([
      ['workflow_run', 'workflow_start'],
      ['workflow_run', 'workflow_start'],
    ])
  })

  it('of a step that runs a workflow counts its cost and approvals, and says when there is none', async () => {
    const inner = await created(step({ name: 'asks' }), step({ name: 'ok', type: 'approval' }))
    const run = (workflow: string) => step({ name: 'inner', type: 'workflow', with: { workflow } })
    const rehearsal = async (id: string) => (await test.request<Json>('POST', `/api/workflows/${id}/dry-run`, {})).body
    const outer = await rehearsal(await created(run(inner)))
    expect(outer).toMatchObject({ needs_approval: ['inner'], problems: [] })
    expect(outer.estimated_cost_usd).toEqual((await rehearsal(inner)).estimated_cost_usd)
    const missing = await rehearsal(await created(run('nosuch')))
    expect(missing).toMatchObject({
      estimated_cost_usd: null,
      problems: ['step "inner": there is no workflow "nosuch"'],
    })
  })

  it('of a tool step says what the policy of its agent says, and what cannot work', async () => {
    const tools = '[capabilities]\ntools = ["workflow_*"]\n'
    await test.spawn('careful', `${tools}[metadata]\napproval = "always"\n`)
    await test.spawn('without', '[capabilities]\ntools = []\n')
    const call = (name: string, agent: string, tool: string) =>
      step({ name, type: 'tool', agent_name: agent, with: { tool } })
    const id = await created(
      call('reads', 'writer', 'workflow_list'),
      call('runs', 'writer', 'workflow_run'),
      call('asks', 'careful', 'workflow_list'),
      call('may not', 'without', 'workflow_list'),
      call('wrong', 'writer', 'workflow_lst'),
      step({ name: 'person', type: 'approval' }),
    )
    const { body } = await test.request<Json>('POST', `/api/workflows/${id}/dry-run`, {})
    expect(body.needs_approval).toEqual(['runs', 'asks', 'person'])
    expect(body.steps[0]).toMatchObject({ agent_name: 'writer', text: 'calls the tool workflow_list as "writer"' })
    expect(body.problems).toEqual([
      'step "may not": the agent "without" may not use workflow_list',
      'step "wrong": there is no tool "workflow_lst"; did you mean "workflow_list"?',
    ])
  })
})

const fan = (name: string, fields: object = {}) => step({ name, mode: 'fan_out', ...fields })
const refusals: readonly (readonly [what: string, steps: unknown, message: string])[] = [
  ['no steps', undefined, "Missing 'steps' array"],
  ['an empty list', [], 'a workflow has one step at least'],
  [
    'a tool without an agent',
    [{ name: 'lost', type: 'tool', with: { tool: 'system_time' } }],
    'step 1 "lost": agent_id: expected agent_id or agent_name, whose rights the tool is called with',
  ],
  ['neither agent_id nor agent_name', [{ name: 'lost' }], 'step 1 "lost": agent_id: expected agent_id or agent_name'],
  [
    'an unknown agent',
    [step(), step({ name: 'b', agent_name: 'editr' })],
    'step 2 "b": agent_name: there is no agent "editr"; did you mean "editor"?',
  ],
  [
    'an unknown id',
    [step({ agent_name: null, agent_id: '7a0d7e9c-40f5-4d5b-8a62-2f2a4f5a0f11' })],
    'step 1 "one": agent_id: there is no agent 7a0d7e9c',
  ],
  [
    'an unknown variable',
    [step({ output_var: 'draft' }), step({ name: 'b', prompt: 'Read {{draf}}' })],
    'step 2 "b": prompt: there is no variable "draf" at character 6; did you mean "draft"?',
  ],
  [
    'a variable of a later step',
    [step({ prompt: '{{later}}' }), step({ name: 'b', output_var: 'later' })],
    'step 1 "one": prompt: there is no variable "later" at character 1; step 2 "b" sets it later',
  ],
  [
    'the own variable',
    [step({ prompt: '{{mine}}', output_var: 'mine' })],
    'there is no variable "mine" at character 1; it is set when this step has ended',
  ],
  [
    'a variable of a step beside it',
    [fan('a', { output_var: 'x' }), fan('b', { prompt: '{{x}}' })],
    'step 2 "b": prompt: there is no variable "x" at character 1; step 1 "a" sets it at the same time',
  ],
  ['a number of iterations outside of a loop', [step({ prompt: '{{iteration}}' })], 'it is for loops'],
  [
    'an unknown variable in a condition',
    [step({ mode: 'conditional', condition: '{{ scor > 3 }}' })],
    'step 1 "one": condition: there is no variable "scor" at character 4',
  ],
  [
    'a condition that is not an expression',
    [step({ mode: 'conditional', condition: '{{ input = 3 }}' })],
    'step 1 "one": condition: A comparison is written == at character 8',
  ],
  [
    'an until that is not an expression',
    [step({ mode: 'loop', until: '{{ output matches "(" }}' })],
    'step 1 "one": until: The pattern is not valid',
  ],
  [
    'a loop without an end',
    [step({ mode: 'loop', max_iterations: 11 })],
    'step 1 "one": until: the loop has no end: say when it ends, or lower max_iterations to 10',
  ],
  [
    'too many iterations',
    [step({ mode: 'loop', max_iterations: 11, until: 'x' })],
    'max_iterations: 11 is more than plugins.workflows.max_iterations allows: 10',
  ],
  [
    'collect without fan_out',
    [step(), { name: 'join', mode: 'collect' }],
    'step 2 "join": mode: collect joins the outputs of fan_out steps, and there is none right before it',
  ],
  ['the same name twice', [step(), step()], 'step 2 "one": name: step 1 has this name already'],
  ['a variable that is built in', [step({ output_var: 'input' })], 'output_var: "input" is built in'],
  ['too many steps', Array.from({ length: 7 }, (_, n) => step({ name: `s${n}` })), 'max_steps allows 6'],
  ['a long prompt', [step({ prompt: 'x'.repeat(201) })], 'prompt: it has 201 characters'],
  [
    'too many retries: max_retries',
    [step({ error_mode: 'retry', max_retries: 21 })],
    'max_retries: 21 is more than plugins.workflows.max_retries allows: 20',
  ],
  [
    'too much time: max_step_timeout_secs',
    [step({ timeout_secs: 86_401 })],
    'step 1 "one": timeout_secs: expected 1 to 86400 seconds',
  ],
  ['no time', [step({ timeout_secs: 0 })], 'step 1 "one": timeout_secs: expected 1 to 86400 seconds'],
  ['an unknown mode', [step({ mode: 'parallel' })], 'steps.0.mode: expected sequential, fan_out'],
  ['an unknown type', [step({ type: 'agnt' })], 'step 1 "one": type: there is no step type "agnt"'],
  [
    'no time at all',
    [step({ type: 'wait', with: { seconds: 0.01 } })],
    'step 1 "one": with.seconds: expected 1 to 31622400 whole seconds',
  ],
  [
    'a wait that is no number',
    [step({ type: 'wait', with: { seconds: '5' } })],
    'with.seconds: expected 1 to 31622400',
  ],
  [
    'a time that is none',
    [step({ type: 'wait', with: { until: 'May 2027' } })],
    'with.until: expected a time in ISO 8601',
  ],
  ['a misspelt field', [step({ promt: 'x', prompt: undefined })], 'promt'],
  ['a name that is no text', [step({ name: 5 })], 'steps.0.name'],
]
describe('what cannot work is refused with its step and field:', () => {
  it.each(refusals)('%s', async (_what, steps, message) => {
    const { status, body } = await create({ name: 'wrong', steps })
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)])
  })

  it('all of it at once', async () => {
    const { body } = await create({ steps: [step({ agent_name: 'x' }), { name: 'b', prompt: '{{nothing}}' }] })
    expect(body.error.details.issues.map(({ path }: Json) => path)).toEqual([
      'steps.0.agent_name',
      'steps.1.agent_id',
      'steps.1.prompt',
    ])
  })

  it('a workflow too many', async () => {
    const answers = await Promise.all(Array.from({ length: 41 }, () => create({ steps: [step()] })))
    expect(answers.map(({ status }) => status).filter((status) => status === 409)).not.toEqual([])
    const { body } = await test.request<Json>('GET', '/api/workflows')
    expect(body).toHaveLength(40)
  })
})

it.each(['GET', 'PUT', 'DELETE'])('%s with something that is no id is a 400', async (method) => {
  const { status, body } = await test.request<Json>(method, '/api/workflows/x', method === 'PUT' ? {} : undefined)
  expect([status, body.error.message]).toEqual([400, 'id: Invalid workflow ID'])
})
