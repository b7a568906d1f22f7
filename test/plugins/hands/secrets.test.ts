import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { callTool, callToolJson } from '../plugin-test.ts'
import { skillText, writeSkill } from '../skills/stage.ts'
import { definition, startHands, writeHand } from './stage.ts'

const SECRET = 'tide-9f3c1b77e2a04d55'
const OTHER = 'ebb-61c09d0f4be5aa12'
let test: PluginTest
beforeAll(async () => {
  test = await startHands({ database: 'file', config: { approvals: { policy: 'never' } } })
  await writeSkill(test, 'gauge', {
    'SKILL.md': skillText('gauge'),
    'skill.toml': `[skill]
name = "gauge"
[runtime]
type = "node"
entry = "run.mjs"
[[tools.provided]]
name = "token"
description = "What it gets"
[config.TIDES_TOKEN]
`,
    'run.mjs':
      'console.log(JSON.stringify({ token: process.env.TIDES_TOKEN ?? "", more: Object.keys(process.env) }))\n',
  })
  const text = definition('tides')
    .replace('tools = [', 'skills = ["gauge"]\ntools = ["shell_exec", "skill_gauge_token", ')
    .replace('[agent]', '[capabilities]\nshell = ["printenv *"]\n\n[agent]')
  await writeHand(test, 'tides', text)
})
afterAll(() => test?.[Symbol.asyncDispose]())

const call = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const { status, body: answer } = await test.request<Json>(method, path, body)
  return status < 300 ? answer : { code: status, error: answer.error?.message }
}
const everything = async (made: Json): Promise<string> => {
  const answers = await Promise.all(
    [
      '/api/hands/tides',
      '/api/hands/active',
      '/api/hands/tides/settings?instance=default',
      `/api/hands/instances/${made.instance_id}/stats`,
      `/api/agents/${made.agent_id}`,
      '/api/audit/recent?limit=100',
    ].map((path) => call('GET', path)),
  )
  return JSON.stringify([answers, test.model.requests, test.log])
}

it('a secret reaches programs of the tools of its agent, and neither prompts, answers nor the log', async () => {
  const made = await call('POST', '/api/hands/tides/activate', { config: { token: SECRET, harbour: 'husum' } })
  expect(made.config).toEqual({ harbour: 'husum', loud: false, token: '***' })
  const other = await call('POST', '/api/hands/tides/activate', { instance_name: 'two', config: { token: OTHER } })
  const lengthOf = async (agent: string): Promise<unknown> => {
    const { token, more } = await callToolJson(test, agent, 'skill_gauge_token')
    expect([token === '' || token === '***', more.includes('TIDES_TOKEN')]).toEqual([true, token === '***'])
    return token
  }
  expect(await lengthOf(made.agent_id)).toBe('***')
  const printed = await callTool(test, made.agent_id, 'shell_exec', { command: 'printenv TIDES_TOKEN' })
  expect(printed).toEqual({ failed: false, text: 'exit code 0\n***\n' })
  const plain = await test.spawn('plain', '[capabilities]\ntools = ["*"]\nshell = ["*"]\n')
  expect(await lengthOf(plain)).toBe('')
  expect((await callTool(test, plain, 'shell_exec', { command: 'printenv TIDES_TOKEN' })).text).toContain('exit code 1')

  test.model.answer('done')
  await call('POST', `/api/schedules/${made.schedule_id}/run`)
  expect(test.model.requests.at(-1)?.system).toContain(
    '- Token (token): a secret; programs get it as the variable TIDES_TOKEN',
  )
  expect(await call('GET', '/api/hands/tides/settings?instance=two')).toMatchObject({
    current_values: { token: '***' },
    settings: [{ secret: false }, { secret: false }, { key: 'token', secret: true }],
  })
  // As a page sends back what it was shown.
  const saved = await call('PUT', '/api/hands/tides/settings?instance=default', { token: '***', loud: true })
  expect(saved.config).toEqual({ harbour: 'husum', loud: true })
  expect(await lengthOf(made.agent_id)).toBe('***')
  await test.restart()
  await call('GET', '/api/skills')
  expect(await lengthOf(made.agent_id)).toBe('***')
  const seen = await everything(made)
  for (const secret of [SECRET, OTHER]) expect(seen).not.toContain(secret)

  expect(await call('PUT', '/api/hands/tides/settings?instance=default', { token: '' })).toMatchObject({ status: 'ok' })
  expect(await lengthOf(made.agent_id)).toBe('')
  expect((await call('GET', '/api/hands/active')).instances[0].config.token).toBe('')
  await call('DELETE', `/api/hands/instances/${other.instance_id}`)
  await call('DELETE', `/api/hands/instances/${made.instance_id}`)
})

it('is gone with its instance, and no agent gives one to a hand', async () => {
  const file = new DatabaseSync(join(test.home, 'data', 'svc.db'), { readOnly: true })
  onTestFinished(() => file.close())
  const names = () => file.prepare(`SELECT name FROM core_vault WHERE plugin = 'hands'`).all()
  const before = names()
  const made = await call('POST', '/api/hands/tides/activate', { config: { token: SECRET } })
  expect(names().length).toBe(before.length + 1)
  expect(await call('POST', '/api/hands/tides/activate', { config: { token: OTHER } })).toMatchObject({ code: 400 })
  expect(names().length).toBe(before.length + 1)
  await call('DELETE', `/api/agents/${made.agent_id}`)
  await eventually(async () => expect(names()).toEqual(before))
  const agent = await test.spawn('rich', '[capabilities]\ntools = ["*"]\nshell = ["*"]\nagent_spawn = true\n')
  expect(await callTool(test, agent, 'hand_activate', { hand_id: 'tides', config: { token: SECRET } })).toMatchObject({
    failed: true,
    text: expect.stringContaining('config.token: a person sets a secret'),
  })
})

it.each([
  ['env_var = "PATH"', /settings.2.env_var: "PATH" is a variable of the system/],
  ['env_var = "SVC_VAULT_KEY"', /settings.2.env_var: "SVC_VAULT_KEY" is a variable of the system/],
  ['env_var = "PGPASSWORD"', /settings.2.env_var: "PGPASSWORD" is a variable of the system/],
  ['env_var = "TIDES_TOKEN"\ndefault = "x"', /settings.2.default: of "token": a secret has no default/],
])('a definition with %j is refused', async (line, error) => {
  const toml = definition('bad').replace('env_var = "TIDES_TOKEN"', line)
  expect(await call('POST', '/api/hands/install', { toml_content: toml })).toMatchObject({
    code: 400,
    error: expect.stringMatching(error),
  })
})
