import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { auditDetails } from '../plugin-test.ts'
import { definition, startHands, writeHand } from './stage.ts'

const needs = (key: string, type: string, value: string, command?: string): string => `
[[requires]]
key = "${key}"
label = "The ${key}"
requirement_type = "${type}"
check_value = "${value}"
[requires.install]
signup_url = "https://example.org/key"
${command === undefined ? '' : `pip = "${command}"`}
`
let test: PluginTest
beforeAll(async () => {
  test = await startHands()
  const more = [
    needs('shell', 'binary', 'sh'),
    needs('echo', 'binary', 'no-such-program', 'echo installed nothing'),
    needs('fails', 'binary', 'no-such-program-2', 'cat /no/such/file'),
    needs('other', 'binary', 'no-such-program-3'),
    needs('key', 'api_key', 'NO_SUCH_KEY'),
    needs('any', 'any_env_var', 'NO_SUCH_KEY,PATH'),
  ]
  await writeHand(test, 'needy', definition('needy', more.join('')))
})
afterAll(() => test?.[Symbol.asyncDispose]())

const install = () => test.request<Json>('POST', '/api/hands/needy/install-deps')
const pending = (daemon = test): Promise<Json> =>
  eventually(async () => {
    const { approvals } = (await daemon.request<Json>('GET', '/api/approvals')).body
    const found = approvals.find(({ status }: Json) => status === 'pending')
    expect(found).toBeDefined()
    return found
  })
const statuses = ({ results }: Json): Json => Object.fromEntries(results.map(({ key, status }: Json) => [key, status]))

it('nothing is run that was not approved', async () => {
  const asked = install()
  const { id, payload, risk_level: risk } = await pending()
  expect({ payload, risk }).toEqual({
    payload: { hand_id: 'needy', commands: ['echo installed nothing', 'cat /no/such/file'] },
    risk: 'critical',
  })
  await test.request('POST', `/api/approvals/${id}/reject`)
  const { body } = await asked
  expect(statuses(body)).toEqual({
    shell: 'already_installed',
    echo: 'skipped',
    fails: 'skipped',
    other: 'no_command',
    key: 'skipped',
    any: 'already_installed',
    tools: 'already_installed',
  })
  expect(body.results[1]).toMatchObject({
    command: 'echo installed nothing',
    message: expect.stringContaining('was not approved: rejected'),
  })
  expect(body.results[4].message).toContain('https://example.org/key')
  expect(await auditDetails(test, 'hand_changed')).toEqual([])
})

it('what was approved is run without a shell, and what came of it is looked at', async () => {
  const asked = install()
  const { id } = await pending()
  await test.request('POST', `/api/approvals/${id}/approve`)
  const { body } = await asked
  expect(body).toMatchObject({ hand_id: 'needy', requirements_met: false })
  expect(body.results[1]).toMatchObject({
    status: 'error',
    exit_code: 0,
    message: 'ended well, and no-such-program is still not there. installed nothing',
  })
  expect(body.results[2]).toMatchObject({
    status: 'error',
    exit_code: 1,
    message: expect.stringContaining('/no/such/file'),
  })
  expect(await auditDetails(test, 'hand_changed')).toEqual([
    'hand "needy": an approved command is run: cat /no/such/file',
    'hand "needy": an approved command is run: echo installed nothing',
  ])
})

it('what is missing is said before anything is made', async () => {
  const answer = await test.request<Json>('POST', '/api/hands/needy/activate')
  expect([answer.status, answer.body.error.message]).toEqual([
    400,
    'The hand "needy" lacks: The echo; The fails; The other; The key. `svc hand check needy` says more',
  ])
  expect((await test.request<Json>('GET', '/api/hands/active')).body.total).toBe(0)
})

it('what takes too long is ended', async () => {
  await using own = await startHands({ config: { plugins: { hands: { install_timeout_secs: 1 } } } })
  await writeHand(own, 'needy', definition('needy', needs('slow', 'binary', 'no-such-program', 'sleep 600')))
  const asked = own.request<Json>('POST', '/api/hands/needy/install-deps')
  const { id } = await pending(own)
  await own.request('POST', `/api/approvals/${id}/approve`)
  expect((await asked).body.results[0]).toMatchObject({ status: 'timeout', command: 'sleep 600' })
})

it('nothing is asked where the configuration permits no installation', async () => {
  await using own = await startHands({ config: { plugins: { hands: { install_programs: false, sources: [] } } } })
  await writeHand(own, 'needy', definition('needy', needs('slow', 'binary', 'no-such-program', 'sleep 600')))
  const { body } = await own.request<Json>('POST', '/api/hands/needy/install-deps')
  expect(body.results[0]).toMatchObject({ status: 'skipped', message: expect.stringContaining('install_programs') })
  expect(await own.request<Json>('POST', '/api/hands/install', { slug: 'wiki' })).toMatchObject({ status: 403 })
})

it('a call that makes, ends or wakes agents from then on is for the API key, and the approval says so', async () => {
  const { agent_id: agentId } = (await test.request<Json>('POST', '/api/agents', { manifest_toml: 'name = "asker"' }))
    .body
  const needsKey = async (action: string): Promise<Json> => {
    const { id } = (await test.request<Json>('POST', '/api/approvals', { agent_id: agentId, action })).body
    const { needs_key: found } = (await test.request<Json>('GET', `/api/approvals/${id}`)).body
    await test.request('POST', `/api/approvals/${id}/reject`)
    return found
  }
  const lasting = ['hand_activate', 'hand_deactivate', 'schedule_create', 'schedule_delete', 'schedule_resume']
  for (const name of [...lasting, 'cron_create', 'cron_cancel', 'cron_enable'])
    expect([name, await needsKey(name)]).toEqual([name, true])
  for (const name of ['hand_status', 'schedule_list', 'cron_list', 'shell_exec'])
    expect([name, await needsKey(name)]).toEqual([name, false])
})
