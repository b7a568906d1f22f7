import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-workflows-'))
  host = await startHost({ home, plugins: [...turnPlugins, 'system', 'queue', 'approvals', 'workflows'] })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "writer"\n' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['workflow', ...args, '--home', home])
const file = async (name: string, text: string): Promise<string> => {
  await writeFile(join(home, name), text)
  return join(home, name)
}
const article = `name = "article"
description = "Drafts"
[[steps]]
name = "draft"
agent_name = "writer"
prompt = "Write about {{input}}"
output_var = "draft"
[[steps]]
name = "improve"
agent_name = "writer"
mode = "loop"
until = "DONE"
`

it('creates, lists, shows, rehearses and removes a workflow', async () => {
  expect((await svc('list')).stdout).toContain('There is no workflow.')
  const path = await file('article.toml', article)
  expect((await svc('validate', path)).stdout).toBe('workflow "article" is valid: 2 steps\n')
  expect((await svc('create', path)).stdout).toMatch(/^workflow "article" \([0-9a-f-]{36}\) was created/)
  expect((await svc('list')).stdout).toMatch(
    /^NAME +STEPS +FILE +ID +DESCRIPTION\narticle +2 +[0-9a-f-]{36} +Drafts\n$/,
  )
  expect((await svc('show', 'article')).stdout).toMatch(/draft +sequential +writer +draft +Write about \{\{input\}\}\n/)
  const rehearsal = await svc('run', 'article', '--dry-run')
  expect(rehearsal.stdout).toMatch(/improve +loop +asks the agent "writer" +5 +unknown/)
  expect(rehearsal.stdout).toContain('estimated cost: unknown')
  expect([rehearsal.code, rehearsal.stderr]).toEqual([1, expect.stringContaining('step "draft": ')])
  expect((await svc('remove', 'article')).stdout).toBe('workflow "article" was removed\n')
  expect(await svc('show', 'article')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no workflow "article"'),
  })
})

it('copies a workflow by its JSON', async () => {
  await svc('create', await file('article.toml', article))
  const { stdout } = await svc('show', 'article', '--json')
  const imported = await svc('import', await file('copy.json', stdout))
  expect(imported.stderr).toBe('')
  expect(imported.stdout).toMatch(/^[0-9a-f-]{36} {2}article {2}2 steps\n$/)
  const { code, stderr } = await svc('show', 'article')
  expect([code, stderr]).toEqual([2, expect.stringContaining('2 workflows have the name "article"')])
})

it('names file, step and field of what is wrong', async () => {
  const broken = await file('broken.toml', 'name = ')
  expect((await svc('create', broken)).stderr).toContain(`${broken}: malformed TOML at line 1, column 8`)
  const unknown = await file('unknown.toml', article.replace('agent_name = "writer"', 'agent_name = "writr"'))
  const { code, stderr } = await svc('validate', unknown)
  expect(code).not.toBe(0)
  expect(stderr).toContain('step 1 "draft": agent_name: there is no agent "writr"; did you mean "writer"?')
  expect((await svc('create', join(home, 'none.toml'))).code).toBe(4)
  expect((await svc('show', 'artcle')).stderr).toContain('there is no workflow "artcle"; did you mean "article"?')
})

it('warns of a file that is not in force, in the list and in svc doctor', async () => {
  await mkdir(join(home, 'workflows'))
  await writeFile(join(home, 'workflows', 'wrong.toml'), 'steps = []')
  await expect.poll(async () => (await svc('list')).stderr).toContain('workflows/wrong.toml: steps: a workflow has one')
  expect((await runHere(['doctor', '--home', home])).stdout).toMatch(
    /workflows +workflows\/wrong\.toml: steps: a workflow/,
  )
})

it('runs a workflow, lists and follows its run, and says what failed', async () => {
  const text = (name: string, type: string, more: string) =>
    `name = "${name}"\n[[steps]]\nname = "only"\ntype = "${type}"\n${more}`
  await svc('create', await file('pause.toml', text('pause', 'wait', 'with = { until = "2020-01-01" }\n')))
  expect(await svc('run', 'pause', '--input', 'through')).toMatchObject({ code: 0, stdout: 'through\n' })
  const [, row = ''] = (await svc('runs', 'pause')).stdout.split('\n')
  const [id = ''] = row.split(' ')
  expect(row).toMatch(/^[0-9a-f-]{36} +pause +Completed +1 +20\S+Z +api/)
  const watched = await svc('watch', id)
  expect(watched.stdout).toMatch(new RegExp(`^ {2}only {2}completed \\([\\d.]+ s\\)\\n${id} {2}pause {2}Completed\\n$`))
  expect(watched.code).toBe(0)
  expect(await svc('cancel', id)).toMatchObject({ code: 1, stderr: expect.stringContaining('Completed already') })
  expect((await svc('watch', '7a0d7e9c-40f5-4d5b-8a62-2f2a4f5a0f11')).code).toBe(4)

  await svc(
    'create',
    await file('fails.toml', text('fails', 'tool', 'agent_name = "writer"\nwith = { tool = "none" }\n')),
  )
  const failed = await svc('run', 'fails')
  expect([failed.code, failed.stderr]).toEqual([
    1,
    expect.stringMatching(/is Failed: .*only[^]*workflow rerun [0-9a-f-]{36}/),
  ])
  const [, failure = ''] = (await svc('runs', '--state', 'Failed')).stdout.split('\n')
  expect(failure).toMatch(/ fails +Failed /)
  expect((await svc('watch', failure.split(' ')[0] ?? '')).code).toBe(1)
  expect((await svc('runs', '--limit', '1', '--offset', '1')).stdout).toContain(' pause ')
  expect((await svc('runs', '--state', 'failed')).stderr).toContain('state')
})

it('says that a run waits for a person, and fails when it is cancelled', async () => {
  await svc(
    'create',
    await file('ask.toml', 'name = "ask"\n[[steps]]\nname = "sure"\ntype = "approval"\nprompt = "Sure?"\n'),
  )
  const running = svc('run', 'ask')
  const { body: workflows } = await host.json('GET', '/api/workflows')
  const { id } = workflows.find(({ name }: { name: string }) => name === 'ask')
  const runs = async () => (await host.json('GET', `/api/workflows/${id}/runs`)).body
  const steps = async () => {
    const [run] = await runs()
    return run && (await host.json('GET', `/api/workflows/runs/${run.id}`)).body.step_results
  }
  await expect.poll(steps).toMatchObject([{ state: 'waiting' }])
  const [run] = await runs()
  await host.json('POST', `/api/workflows/runs/${run.id}/cancel`)
  const { code, stdout, stderr } = await running
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain(`run ${run.id} began`)
  expect(stderr).toMatch(/step "sure" waits for a person: .*approval list/)
  expect(stderr).toContain(`run ${run.id} is Cancelled`)
})

it('pauses and resumes a run, and runs it again from a step', async () => {
  const wait = (name: string, seconds: number) =>
    `[[steps]]\nname = "${name}"\ntype = "wait"\nwith = { seconds = ${seconds} }\n`
  await svc('create', await file('two.toml', `name = "two"\n${wait('long', 600)}${wait('other', 600)}`))
  const { body } = await host.json('POST', '/api/workflows', {
    name: 'quick',
    steps: [
      { name: 'one', type: 'wait', with: { until: '2020-01-01T00:00:00Z' } },
      { name: 'two', type: 'wait', with: { until: '{{input}}' } },
    ],
  })
  const { id } = JSON.parse((await svc('show', 'two', '--json')).stdout)
  const run = (await host.json('POST', `/api/workflows/${id}/run?wait=false`, {})).body.run_id
  expect((await svc('pause', run)).stdout).toBe(`run ${run} is paused\n`)
  expect(await svc('pause', run)).toMatchObject({ code: 1, stderr: expect.stringContaining('The run is Paused') })
  expect(JSON.parse((await svc('resume', run, '--json')).stdout)).toEqual({ status: 'running', run_id: run })
  expect((await svc('rerun', run)).stderr).toContain('cancel it first')
  expect((await svc('cancel', run)).stdout).toBe(`run ${run} was cancelled\n`)
  expect((await svc('rerun', run, '--step', 'lon')).stderr).toContain('did you mean "long"?')

  const first = (await host.json('POST', `/api/workflows/${body.workflow_id}/run`, { input: '2021-01-01T00:00:00Z' }))
    .body
  const again = await svc('rerun', first.run_id, '--step', 'two', '--watch')
  expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/two {2}completed.*\n.*Completed\n$/s)])
  const begun = JSON.parse((await svc('rerun', first.run_id, '--json')).stdout)
  expect(begun).toEqual({ run_id: expect.stringMatching(/^[0-9a-f-]{36}$/), status: 'pending' })
  expect((await svc('rerun', run)).stdout).toMatch(/^run [0-9a-f-]{36} began\n$/)
})
