import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { auditDetails, callToolJson, turnPlugins, useTool } from '../plugin-test.ts'

let test: PluginTest
let agentId = ''
const posts: { readonly url: string; readonly body: Json }[] = []
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/triggers', import.meta.url),
    builtIns: [
      ...turnPlugins,
      'events',
      'kv',
      'memory',
      'queue',
      'system',
      'tasks',
      'webhooks',
      'result-delivery',
      'workflows',
      'triggers',
    ],
    database: 'file',
    config: {
      plugins: {
        triggers: { max_result_chars: 40, max_event_chars: 300, max_per_event: 2, max_depth: 2, max_history: 5 },
      },
    },
    fetch(url, { body }) {
      posts.push({ url: url.href, body: JSON.parse(String(body)) })
      return Promise.resolve(new Response(''))
    },
  })
  agentId = await test.spawn('watcher')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = async (pattern: unknown, more: object = {}): Promise<string> => {
  const made = await call('POST', '/api/triggers', { agent_id: agentId, pattern, ...more })
  expect([made.status, made.body.error]).toEqual([201, undefined])
  return made.body.trigger_id
}
const remove = (id: string) => call('DELETE', `/api/triggers/${id}`)
const trigger = async (id: string): Promise<Json> => (await call('GET', `/api/triggers/${id}`)).body
/** The firings of a trigger once so many have ended, the oldest first. */
const ended = (id: string, count: number): Promise<readonly Json[]> =>
  eventually(async () => {
    const { firings } = (await call('GET', `/api/triggers/${id}/history`)).body
    expect(firings.filter(({ state }: Json) => state !== 'open')).toHaveLength(count)
    return firings.toReversed()
  })
const setKey = (key: string, of = agentId) => call('PUT', `/api/memory/agents/${of}/kv/${key}`, { value: 1 })

it('asks the agent once, with the event as a sentence, keeps max_result_chars and sends the whole result', async () => {
  const id = await add(
    { agent_spawned: { name_pattern: 'scout-*' } },
    { prompt_template: 'Greet: {{event}}', delivery: { kind: 'webhook', url: 'https://results.example/in' } },
  )
  const answer = 'Hello, scout! '.repeat(5)
  test.model.answer(answer)
  await test.spawn('other-1')
  const scout = await test.spawn('scout-1')
  const text = `Agent 'scout-1' (id: ${scout}) was spawned`
  expect(await ended(id, 1)).toMatchObject([
    { event: 'agent_spawned', text, state: 'done', depth: 1, agent_id: agentId, result: answer.slice(0, 40) },
  ])
  expect(JSON.stringify((await call('GET', `/api/agents/${agentId}/session`)).body)).toContain(`Greet: ${text}`)
  expect(await trigger(id)).toMatchObject({ fire_count: 1, last_fired: expect.any(String) })
  expect((await auditDetails(test, 'trigger_fired'))[0]).toContain(`trigger ${id} fired for agent_spawned`)
  await eventually(() => expect(posts).toHaveLength(1))
  expect(posts[0]?.body).toMatchObject({ event: 'trigger.completed' })
  expect(JSON.stringify(posts[0]?.body)).toContain(answer)
  expect(await test.metrics('svc_trigger_events_total')).toEqual(
    new Map([
      ['svc_trigger_events_total{outcome="fired"}', 1],
      ['svc_trigger_events_total{outcome="done"}', 1],
    ]),
  )
  await remove(id)
})

it('of a manifest, fires for others than its own agent', async () => {
  const toml = 'name = "greeter"\n[[triggers]]\npattern = "agent_spawned"\nprompt_template = "Greet: {{event}}"'
  const { agent_id: greeter } = (await call('POST', '/api/agents', { manifest_toml: toml })).body
  const [{ id }] = (await call('GET', `/api/triggers?agent_id=${greeter}`)).body
  const guest = await test.spawn('guest')
  expect(await ended(id, 1)).toMatchObject([{ text: `Agent 'guest' (id: ${guest}) was spawned`, agent_id: greeter }])
  expect((await call('GET', `/api/agents/${greeter}/session`)).body.messages[0].content).toContain('Greet: Agent')
  await call('DELETE', `/api/agents/${greeter}`)
  expect((await call('GET', `/api/triggers/${id}`)).status).toBe(404)
})

it('fires as often as max_fires says; then the trigger is disabled, and says why', async () => {
  const id = await add({ agent_terminated: {} }, { max_fires: 2 })
  for (let n = 0; n < 4; n++) await call('DELETE', `/api/agents/${await test.spawn(`short-${n}`)}`)
  expect(await ended(id, 2)).toMatchObject([{ state: 'done' }, { state: 'done' }])
  expect(await trigger(id)).toMatchObject({
    fire_count: 2,
    enabled: false,
    reason: expect.stringContaining('max_fires'),
  })
  expect(await call('PUT', `/api/triggers/${id}`, { enabled: true })).toMatchObject({ status: 409 })
  expect((await call('PUT', `/api/triggers/${id}`, { enabled: true, max_fires: 3 })).body.enabled).toBe(true)
  await remove(id)
})

it('cools down for the same thing, and not for another', async () => {
  const id = await add({ memory_key_pattern: { key_pattern: 'user.*' } }, { cooldown_secs: 3_600 })
  for (const key of ['user.name', 'weather', 'user.name', 'user.city']) await setKey(key)
  const firings = await ended(id, 3)
  expect(firings.map(({ state, reason }) => reason ?? state)).toEqual(['done', 'cooldown', 'done'])
  expect(firings[1]?.detail).toContain('3600 seconds')
  await remove(id)
})

it('keeps the newest of its history', async () => {
  const id = await add('memory_update', { cooldown_secs: 3_600 })
  for (let n = 0; n < 8; n++) await setKey(`key-${n}`)
  await eventually(async () => {
    expect((await call('GET', `/api/triggers/${id}/history`)).body.firings.map(({ state }: Json) => state)).toEqual(
      Array.from({ length: 8 }, () => 'done'),
    )
  })
  await setKey('key-7')
  expect((await ended(id, 5)).at(-1)).toMatchObject({ reason: 'cooldown' })
  await remove(id)
})

it('is held back while its agent does not run, and ends with its agent', async () => {
  const paused = await test.spawn('paused')
  const id = await add({ agent_spawned: { name_pattern: 'noise' } }, { agent_id: paused })
  await call('PUT', `/api/agents/${paused}/suspend`)
  await test.spawn('noise')
  expect(await ended(id, 1)).toMatchObject([{ state: 'held_back', reason: 'agent_not_running' }])
  expect((await trigger(id)).fire_count).toBe(0)
  await call('DELETE', `/api/agents/${paused}`)
  expect(await trigger(id)).toMatchObject({ enabled: false, reason: 'its agent was removed' })
  expect(await call('PUT', `/api/triggers/${id}`, { enabled: true })).toMatchObject({ status: 409 })
  await remove(id)
})

it('fires the oldest triggers of an event where there are many: max_per_event', async () => {
  const ids = [await add('memory_update'), await add('memory_update'), await add('memory_update')]
  await setKey('crowded')
  const ends = await Promise.all(ids.map((id) => ended(id, 1)))
  expect(ends.flat().map(({ state, reason }) => reason ?? state)).toEqual(['done', 'done', 'too_many_triggers'])
  for (const id of ids) await remove(id)
})

it('tells what was published, with where it comes from, cut at max_event_chars', async () => {
  const id = await add({ content_match: { substring: 'PAGES' } }, { prompt_template: '{{event}}' })
  const publisher = await test.spawn('publisher')
  await callToolJson(test, publisher, 'event_publish', { event_type: 'other.ready', payload: 'nothing' })
  await callToolJson(test, publisher, 'event_publish', {
    event_type: 'report.ready',
    payload: { pages: 'x'.repeat(400) },
  })
  const [firing] = await ended(id, 1)
  expect(firing?.text).toContain(
    `The event 'report.ready' was published by the agent (id: ${publisher}): {"pages":"xxx`,
  )
  expect(firing?.text.length).toBeLessThan(340)
  await remove(id)
})

it('fires for tasks that are for itself, and not for those of others', async () => {
  const ids = [
    await add({ task_posted: { assignee_match: 'self' } }, { prompt_template: '{{event}}' }),
    await add({ task_posted: { assignee_match: 'unassigned' } }),
    await add({ task_claimed: { creator_match: 'boss' } }, { max_fires: 1 }),
  ]
  const boss = await test.spawn('boss', 'capabilities.tools = ["*"]\ncapabilities.agent_message = ["*"]\n')
  const post = (title: string, more: object = {}) =>
    callToolJson(test, boss, 'task_post', { title, description: 'Soon', ...more })
  await call('POST', '/api/tasks', { title: 'Mine', description: 'Now', assigned_to: 'watcher', wake: false })
  await post('Anyone')
  for (let n = 0; n < 2; n++) await callToolJson(test, agentId, 'task_claim', {})
  const [own = '', free = '', claimed = ''] = ids
  expect(await ended(own, 1)).toMatchObject([{ text: expect.stringMatching(/^Task 'Mine' .*: Now$/), state: 'done' }])
  expect(await ended(free, 1)).toMatchObject([{ text: expect.stringMatching(/^Task 'Anyone'/), state: 'done' }])
  expect(await ended(claimed, 1)).toMatchObject([{ event: 'task_claimed', state: 'done' }])
  for (const id of ids) await remove(id)
})

it('counts triggers that set each other off, and stops at max_depth', async () => {
  const ping = await test.spawn('ping')
  const pong = await test.spawn('pong')
  const ids = [
    await add({ memory_key_pattern: { key_pattern: 'ping' } }, { agent_id: pong, cooldown_secs: 0 }),
    await add({ memory_key_pattern: { key_pattern: 'pong' } }, { agent_id: ping, cooldown_secs: 0 }),
  ]
  const set = (key: string) => [{ calls: [{ tool: 'memory_store', args: { key, value: 'x' } }] }, 'Done.']
  test.model.answer(...set('pong'), ...set('ping'))
  await setKey('ping', ping)
  const [first = '', second = ''] = ids
  const held = (await ended(first, 2)).map(({ state, reason, depth }) => [reason ?? state, depth])
  expect(held).toEqual([
    ['done', 1],
    ['chain_depth', 3],
  ])
  expect(await ended(second, 1)).toMatchObject([{ state: 'done', depth: 2 }])
  expect((await auditDetails(test, 'trigger_changed'))[0]).toContain('plugins.triggers.max_depth')
  expect(test.log.some((line) => line.includes('does not fire for memory_update'))).toBe(true)
  for (const id of ids) await remove(id)
})

it('runs a workflow with the event as its input', async () => {
  const workflow = await call('POST', '/api/workflows', {
    name: 'greet',
    steps: [{ name: 'ask', agent_name: 'watcher', prompt: 'Step: {{input}}' }],
  })
  const id = await add({ agent_spawned: { name_pattern: 'flow' } }, { workflow_id: workflow.body.workflow_id })
  test.model.answer('From the workflow.')
  await test.spawn('flow')
  const [firing] = await ended(id, 1)
  expect(firing).toMatchObject({ state: 'done', result: 'From the workflow.' })
  expect((await call('GET', `/api/workflows/runs/${firing?.id}`)).body.input).toContain("Agent 'flow'")
  await remove(id)
})

it('counts a chain through the runs of a workflow too', async () => {
  await test.spawn('looper')
  const steps = [{ name: 'again', agent_name: 'looper', prompt: '{{input}}' }]
  const workflow = (await call('POST', '/api/workflows', { name: 'loop', steps })).body.workflow_id
  const pattern = { memory_key_pattern: { key_pattern: 'loop' } }
  const id = await add(pattern, { workflow_id: workflow, cooldown_secs: 0 })
  const again = [{ calls: [{ tool: 'memory_store', args: { key: 'loop', value: 'x' } }] }, 'Done.']
  test.model.answer(...again, ...again)
  await setKey('loop')
  expect((await ended(id, 3)).map(({ state, reason, depth }) => [reason ?? state, depth])).toEqual([
    ['done', 1],
    ['done', 2],
    ['chain_depth', 3],
  ])
  await remove(id)
})

it('counts runs of workflows that set each other off, and stops at max_depth', async () => {
  const workflow = await call('POST', '/api/workflows', {
    name: 'endless',
    steps: [{ name: 'ask', agent_name: 'watcher', prompt: '{{input}}' }],
  })
  const more = { workflow_id: workflow.body.workflow_id, cooldown_secs: 0 }
  const runs = await add({ content_match: { substring: 'workflow "endless" is completed' } }, more)
  await call('POST', `/api/workflows/${workflow.body.workflow_id}/run`, { input: 'go' })
  expect((await ended(runs, 3)).map(({ reason, depth }) => [reason, depth])).toEqual([
    [null, 1],
    [null, 2],
    ['chain_depth', 3],
  ])
  await remove(runs)
})

it('counts triggers and tasks that set each other off, and stops at max_depth', async () => {
  // One turn after the other, so that each finds its answers.
  const toml = 'max_concurrent_invocations = 1\n[capabilities]\ntools = ["*"]'
  const busy = await test.spawn('busy', toml)
  const tasks = await add({ memory_key_pattern: { key_pattern: 'busy' } }, { agent_id: busy, cooldown_secs: 0 })
  const use = (tool: string, args: object) => [{ calls: [{ tool, args: { ...args } }] }, 'Done.']
  const round = [
    ...use('task_post', { title: 'x', description: 'y', assigned_to: 'busy' }),
    ...use('memory_store', { key: 'busy', value: 'x' }),
  ]
  test.model.answer(...round, ...round)
  await setKey('busy', busy)
  expect((await ended(tasks, 3)).map(({ reason, depth }) => [reason, depth])).toEqual([
    [null, 1],
    [null, 2],
    ['chain_depth', 3],
  ])
  await remove(tasks)
})

it('loses nothing of what happened while the daemon was down, and repeats nothing', async () => {
  const id = await add({ system_keyword: { keyword: 'STARTED' } })
  await test.restart()
  expect(await ended(id, 1)).toMatchObject([{ event: 'daemon_started', state: 'done' }])
  await remove(id)
  const spent = await add({ agent_spawned: { name_pattern: 'again' } })
  await test.spawn('again')
  await ended(spent, 1)
  await test.restart()
  await test.spawn('later')
  expect(await trigger(spent)).toMatchObject({ fire_count: 1 })
  await remove(spent)
})

it('an agent hears what it may, of what it asked for itself', async () => {
  const nosy = await test.spawn('nosy')
  const { id } = await callToolJson(test, nosy, 'trigger_create', {
    pattern: { all: {} },
    prompt_template: '{{event}}',
  })
  await setKey('private', agentId)
  await useTool(test, agentId, 'event_publish', { event_type: 'said' })
  await test.spawn('public')
  await eventually(async () => {
    const { firings } = (await call('GET', `/api/triggers/${id}/history?limit=1000`)).body
    const heard = firings.filter(({ agent_id: of }: Json) => of === nosy).map(({ text }: Json) => text as string)
    expect(heard.some((text: string) => text.includes("Agent 'public'"))).toBe(true)
    expect(heard.filter((text: string) => text.includes('private') || text.includes('answered:'))).toEqual([])
    expect(heard.some((text: string) => text.includes("The event 'said'"))).toBe(true)
  })
  await remove(id)
})
