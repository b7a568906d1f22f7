import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { handPlugins, startHands } from './stage.ts'

/** As the example in docs/hands.md. */
it('an agent of a template with three skills, and a hand that works on its schedule with what it needs and no more', async () => {
  await using test = await startHands({
    database: 'file',
    builtIns: [...handPlugins, 'templates'],
    config: { plugins: { web: { searxng_url: 'https://search.example' } }, approvals: { policy: 'never' } },
  })
  const call = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const { status, body: answer } = await test.request<Json>(method, path, body)
    expect([status < 300, answer.error]).toEqual([true, undefined])
    return answer
  }
  const toolsOf = (at: number) =>
    test.model.requests
      .at(at)
      ?.tools?.map(({ name }) => name)
      .toSorted()
  const skillsIn = (at: number) =>
    [...String(test.model.requests.at(at)?.system).matchAll(/^- ([a-z-]+): /gm)].map(([, name]) => name)

  const made = await call('POST', '/api/agents', { template: 'researcher', name: 'ada' })
  const skills = ['web-search', 'technical-writer', 'writing-coach']
  await call('PUT', `/api/agents/${made.agent_id}/skills`, { skills })
  await test.say(made.agent_id, 'Hello', 'Hello.')
  const { effective } = await call('GET', `/api/agents/${made.agent_id}/tools`)
  expect(toolsOf(-1)).toEqual(effective.toSorted())
  expect(skillsIn(-1)).toEqual(skills.toSorted())

  const hand = await call('GET', '/api/hands/researcher')
  const instance = await call('POST', '/api/hands/researcher/activate', {
    config: { question: 'How fast do tidal flats rise?', depth: 'quick' },
  })
  expect(instance).toMatchObject({ status: 'Active', next_run: expect.any(String) })
  test.model.requests.length = 0
  const figures = hand.dashboard.map(({ memory_key: key, format }: Json, at: number) => ({
    tool: 'kv_set',
    args: { key, value: format === 'text' ? 'mud' : String(at + 1) },
  }))
  test.model.answer({ calls: figures }, 'One answer, two sources.')
  // Its slot comes while the daemon does not run.
  await test.restart(() => {
    const file = new DatabaseSync(join(test.home, 'data', 'svc.db'))
    file.exec(`UPDATE schedules_job SET next_run = ${Date.now() - 1000}, planned_at = 0`)
    file.close()
  })
  await eventually(async () =>
    expect(await call('GET', `/api/schedules/${instance.schedule_id}`)).toMatchObject({
      runs: 1,
      last_status: expect.stringMatching(/^ok/),
    }),
  )
  expect(test.model.requests).toHaveLength(2)
  expect(toolsOf(0)).toEqual(hand.tools.toSorted())
  expect(skillsIn(0)).toEqual(hand.skills.toSorted())
  const [asked] = test.model.requests
  expect(asked?.system).toContain(hand.agent.system_prompt.trim())
  expect(asked?.system).toContain('(question): How fast do tidal flats rise?')
  expect(asked?.turns).toHaveLength(1)
  expect(JSON.stringify(asked?.turns)).toContain('Begin a run as Researcher')
  const { metrics } = await call('GET', `/api/hands/instances/${instance.instance_id}/stats`)
  expect(Object.values(metrics)).toEqual(
    hand.dashboard.map(({ format }: Json, at: number) => ({ value: format === 'text' ? 'mud' : at + 1, format })),
  )
  const { capabilities } = await call('GET', `/api/agents/${instance.agent_id}`)
  expect(capabilities).toMatchObject({ shell: [], agent_spawn: false, agent_message: [] })
  expect((await call('GET', '/api/hands/active')).instances).toMatchObject([{ status: 'Active' }])
})
