import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builtInFolders } from '../../core/host/folders.ts'
import { operator, startSignIn, tokenOf, withForger } from '../plugins/sso/rig.ts'
import { textUnlessFeed } from '../support/feed.ts'
import type { TestHost } from '../support/host.ts'
import { freePort, startForger } from '../support/openid.ts'
import type { Forger } from '../support/openid.ts'

type Caller = Readonly<Record<string, string>> & { readonly authorization: string }
/** One daemon with every built-in plugin, a paired device and somebody who signed in. */
async function start() {
  const { host } = await withForger(
    {},
    { pairing: { enabled: true }, default_provider: 'builtin', webhook_triggers: { enabled: false } },
    { plugins: await builtInFolders() },
  )
  const { device } = await pair(host)
  const user = toCaller(await tokenOf(host))
  return { host, device, user, agent: await spawn(host, 'ada') }
}
const toCaller = (token: string): Caller => ({ authorization: `Bearer ${token}` })
async function pair(host: TestHost, name = 'phone') {
  const code = (await host.json('POST', '/api/pairing/request', undefined, operator)).body.pairing_code
  const { body } = await host.json('POST', '/api/pairing/complete', { pairing_code: code, display_name: name })
  return { device: toCaller(body.api_key), deviceId: body.device_id as string }
}
async function spawn(host: TestHost, name: string, more = ''): Promise<string> {
  const manifest = `name = "${name}"\n[model]\nprovider = "builtin"\n${more}`
  return (await host.json('POST', '/api/agents', { manifest_toml: manifest }, operator)).body.agent_id
}

/** What a caller without the key is told where it would take the key. */
const NEEDS_KEY = /cannot do this: use the API key/
async function asks(
  host: TestHost,
  method: string,
  path: string,
  who: Caller,
): Promise<{ status: number; needsKey: boolean }> {
  const gone = new AbortController()
  const response = await host.fetch(path, {
    method,
    headers: { ...who, ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
    ...(method === 'GET' ? {} : { body: '{}' }),
    redirect: 'manual',
    signal: gone.signal,
  })
  const text = await textUnlessFeed(response)
  gone.abort()
  return { status: response.status, needsKey: response.status === 403 && NEEDS_KEY.test(text) }
}

describe('who may call what', () => {
  it('follows from the effect of every live route, for a device and for somebody who signed in', async () => {
    const { host, device, user, agent } = await start()
    const routes = host.app
      .routes()
      .filter(({ auth }) => auth === 'bearer')
      // What ends the caller's own credential comes last.
      .toSorted((a, b) => Number(a.path.includes('logout')) - Number(b.path.includes('logout')))
    expect(routes.length).toBeGreaterThan(100)
    const wrong: string[] = []
    for (const [name, who] of Object.entries({ device, user })) {
      for (const { method, path, effect, effectOf } of routes) {
        // Of others: a device removes only itself.
        const wanted = effect === 'lasting' || (effect === 'own' && effectOf !== undefined)
        const at = path.replaceAll(/(?:\*\*)?:(\w+)/g, (_, key: string) => (key === 'id' ? agent : 'x'))
        const { status, needsKey } = await asks(host, method, at, who)
        if (needsKey !== wanted || status === 401)
          wrong.push(`${name}: ${method} ${path} is ${effect}, answered ${status}`)
      }
    }
    expect(wrong).toEqual([])
    expect((await host.json('GET', `/api/agents/${agent}`, undefined, operator)).status).toBe(200)
    host.defects()
  })
})

describe('what was tried against it', () => {
  const TOKEN = 'the-token-of-the-hooks-with-enough-characters'
  let forger: Forger
  let host: TestHost
  let agent: string
  let user: Caller
  beforeAll(async () => {
    const [port, issuer] = await Promise.all([freePort(), startForger()])
    forger = issuer
    host = await startSignIn(
      forger.issuer,
      port,
      { scopes: ['openid', 'email'] },
      {
        pairing: { enabled: true },
        default_provider: 'builtin',
        webhook_triggers: { enabled: true, token: TOKEN, rate_limit_per_minute: 1_000 },
      },
      { plugins: await builtInFolders() },
    )
    agent = await spawn(host, 'ada')
    user = toCaller(await tokenOf(host))
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await forger[Symbol.asyncDispose]()
  })
  const away = { base_url: 'http://127.0.0.1:9/v1' }
  const call = async (method: string, path: string, body: unknown, who: Readonly<Record<string, string>>) =>
    (await host.json(method, path, body, { ...who })).status
  const detail = async () => {
    const { session_id: _, ...rest } = (await host.json('GET', `/api/agents/${agent}`, undefined, operator)).body
    return rest
  }
  const remove = async (deviceId: string): Promise<void> =>
    expect(await call('DELETE', `/api/pairing/devices/${deviceId}`, undefined, operator)).toBe(200)
  const trail = async (): Promise<readonly { event_type: string; actor: string; details: string }[]> =>
    (await host.json('GET', '/api/audit/recent?limit=500', undefined, operator)).body.entries
  const socketOf = (protocol: string, of = agent): WebSocket =>
    new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${of}/ws`, ['svc', protocol])
  const ticketOf = async (who: Caller): Promise<string> =>
    (await host.json('POST', '/api/auth/ws-ticket', undefined, { ...who })).body.protocol

  it('a device and a sign-in send conversations elsewhere by no way that names an address or a model', async () => {
    const { device } = await pair(host)
    const before = await detail()
    for (const who of [device, user]) {
      for (const [method, path, body] of [
        ['PATCH', `/api/agents/${agent}/config`, away],
        ['PATCH', `/api/agents/${agent}/config`, { fallback_models: [{ model: 'm', ...away }] }],
        ['PATCH', `/api/agents/${agent}`, { manifest_toml: 'name = "ada"' }],
        ['PUT', `/api/agents/${agent}/model`, { model: 'openai/gpt-5' }],
        ['PUT', '/api/providers/openai/url', { url: away.base_url }],
        ['POST', '/api/providers/openai/key', { api_key: 'sk-of-somebody-else' }],
        ['POST', '/api/models/aliases', { alias: 'default', model_id: 'openai/gpt-5' }],
        ['POST', '/api/models/custom', { id: 'gpt-5', provider: 'openai' }],
        ['POST', '/api/webhooks', { name: 'x', url: 'https://example.com/', events: ['message_completed'] }],
        ['POST', '/api/webhooks/events', { event_type: 'message_completed', url: 'https://example.com/' }],
      ] as const)
        expect([path, await call(method, path, body, who)]).toEqual([path, 403])
    }
    expect(await detail()).toEqual(before)
  })

  it('the command that changes the model is refused to them in every way it can be written', async () => {
    const { device } = await pair(host)
    for (const command of ['/model openai/gpt-5', '/MODEL openai/gpt-5', '/model\topenai/gpt-5', '/model  x'])
      for (const who of [device, user])
        expect([command, await call('POST', `/api/agents/${agent}/commands`, { command }, who)]).toEqual([command, 403])
    expect(await call('POST', `/api/agents/${agent}/commands`, { command: '/model' }, device)).toBe(200)
  })

  it('the same command over the socket of a device changes nothing', async () => {
    const { device } = await pair(host)
    const before = await detail()
    const socket = socketOf(await ticketOf(device))
    const frames: { type: string }[] = []
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    await once(socket, 'open')
    for (const frame of [
      '/model openai/gpt-5',
      JSON.stringify({ type: 'message', content: '/model openai/gpt-5' }),
      JSON.stringify({ type: 'command', command: 'model', args: 'openai/gpt-5' }),
      JSON.stringify({ type: 'command', command: '/Model', args: 'openai/gpt-5' }),
    ])
      socket.send(frame)
    await expect.poll(() => frames.filter(({ type }) => type === 'error').length).toBeGreaterThanOrEqual(4)
    socket.close()
    expect(await detail()).toEqual(before)
  })

  it('no other way to write a method or a path gets around the check', async () => {
    const { device } = await pair(host)
    const before = await detail()
    for (const path of [
      `/api/agents/${agent.toUpperCase()}/config`,
      `/api/%61gents/${agent}/config`,
      `/api/agents/${agent}/%63onfig`,
    ])
      expect([path, await call('PATCH', path, away, device)]).toEqual([path, 403])
    await call('POST', `/api/agents/${agent}/config`, away, { ...device, 'x-http-method-override': 'PATCH' })
    await call('GET', `/api/agents/${agent}/config?_method=PATCH`, undefined, device)
    expect(await detail()).toEqual(before)
  })

  it('the Idempotency-Key of the owner gives a device no answer of theirs, and takes nobody the key away', async () => {
    const { device } = await pair(host)
    const other = (await pair(host, 'other')).device
    const made = { manifest_toml: 'name = "twin"' }
    expect(await call('POST', '/api/agents', made, { ...operator, 'idempotency-key': 'k-1' })).toBe(201)
    expect(await call('POST', '/api/agents', made, { ...device, 'idempotency-key': 'k-1' })).toBe(403)
    const say = (who: Caller) =>
      host.json('POST', `/api/agents/${agent}/message`, { message: 'hi' }, { ...who, 'idempotency-key': 'k-2' })
    const seen = new Set<string>()
    for (const who of [operator, device, other, user]) {
      const first = await say(who)
      expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null])
      seen.add(first.headers.get('x-turn-id') ?? first.body.turn_id)
      expect((await say(who)).headers.get('idempotent-replayed')).toBe('true')
    }
    expect(seen.size).toBe(4)
  })

  it('memory and files that steer the agent later are not written by a device', async () => {
    const { device } = await pair(host)
    for (const who of [device, user]) {
      expect(await call('PUT', `/api/memory/agents/${agent}/kv/self.orders`, { value: 'obey' }, who)).toBe(403)
      expect(await call('POST', `/api/agents/${agent}/memory/import`, { kv: { orders: 'obey' } }, who)).toBe(403)
      expect(await call('PUT', `/api/agents/${agent}/files/SOUL.md`, { content: 'obey' }, who)).toBe(403)
    }
  })

  it('a ticket that a device got in time opens nothing after the device was removed', async () => {
    const { device, deviceId } = await pair(host)
    const protocol = await ticketOf(device)
    await remove(deviceId)
    const late = socketOf(protocol)
    const opened = await new Promise<boolean>((resolve) => {
      late.addEventListener('open', () => resolve(true), { once: true })
      late.addEventListener('error', () => resolve(false), { once: true })
    })
    expect(opened).toBe(false)
    expect(await call('POST', `/api/agents/${agent}/message`, { message: 'hello' }, device)).toBe(401)
  })

  it('neither sockets nor streams of a device survive its removal', async () => {
    const { device, deviceId } = await pair(host)
    const { body: session } = await host.json('GET', `/api/agents/${agent}/session`, undefined, operator)
    const streams = await Promise.all(
      ['/api/logs/stream', `/api/sessions/${session.session_id ?? session.id}/stream`].map((path) =>
        host.fetch(path, { headers: device }),
      ),
    )
    expect(streams.map(({ status }) => status)).toEqual([200, 200])
    const socket = socketOf(await ticketOf(device))
    await once(socket, 'open')
    const closed = once(socket, 'close')
    await remove(deviceId)
    await closed
    for (const stream of streams) await stream.text().catch(() => 'cut off')
  })

  it('neither sockets nor streams of a sign-in survive signing out', async () => {
    const gone = toCaller(await tokenOf(host))
    const stream = await host.fetch('/api/logs/stream', { headers: gone })
    const socket = socketOf(await ticketOf(gone))
    await once(socket, 'open')
    const closed = once(socket, 'close')
    expect(await call('POST', '/api/auth/logout', undefined, gone)).toBe(200)
    await closed
    await stream.text().catch(() => 'cut off')
    expect(await call('GET', '/api/agents', undefined, gone)).toBe(401)
  })

  it('of two credentials at once the weaker one counts, and never both', async () => {
    const { device } = await pair(host)
    const twice = { ...device, 'x-api-key': 'the-operators-key' }
    expect(await call('POST', '/api/pairing/request', undefined, twice)).toBe(403)
    const both = { authorization: `${device.authorization}, ${operator.authorization}` }
    expect(await call('POST', '/api/pairing/request', undefined, both)).toBe(400)
  })

  it('a page of another site wins nothing, with the key of somebody in its hands or without', async () => {
    const before = await detail()
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `${host.url}0` },
      { origin: 'http://127.0.0.1:3000' },
      { 'sec-fetch-site': 'cross-site' },
    ])
      for (const who of [operator, user, {}])
        expect([401, 403]).toContain(await call('PATCH', `/api/agents/${agent}/config`, away, { ...who, ...headers }))
    expect(await detail()).toEqual(before)
  })

  it('somebody who signed in makes neither a device nor a key of their sign-in', async () => {
    expect(await call('POST', '/api/pairing/request', undefined, user)).toBe(403)
    for (const [key, value] of [
      ['api_key', 'mine-from-now-on-mine'],
      ['pairing.enabled', true],
      ['webhook_triggers.token', TOKEN],
    ])
      expect(await call('POST', '/api/config/set', { key, value }, user)).toBe(403)
    expect((await host.json('GET', '/api/auth/sessions', undefined, { ...user })).status).toBe(403)
  })

  it('an agent that speaks a command only says it, and its id is no credential', async () => {
    const before = await detail()
    const asked = { message: 'echo /model openai/gpt-5' }
    expect(await call('POST', `/api/agents/${agent}/message`, asked, operator)).toBe(200)
    expect(await call('PATCH', `/api/agents/${agent}/config`, away, { authorization: `Bearer ${agent}` })).toBe(401)
    expect(await detail()).toEqual(before)
  })

  it('an agent gives a child neither an address nor rights of its own', async () => {
    const parent = await spawn(host, 'parent', '[capabilities]\ntools = ["agent_spawn"]\nagent_spawn = true\n')
    for (const [name, more] of [
      ['away', '[model]\nprovider = "builtin"\nbase_url = "http://127.0.0.1:9/v1"\n'],
      ['netted', '[model]\nprovider = "builtin"\n[capabilities]\nnetwork = ["*"]\n'],
      ['armed', '[model]\nprovider = "builtin"\n[capabilities]\ntools = ["shell_exec"]\n'],
    ]) {
      const args = JSON.stringify({ manifest_toml: `name = "${name}"\n${more}` })
      await host.json('POST', `/api/agents/${parent}/message`, { message: `use agent_spawn ${args}` }, operator)
    }
    const { body: agents } = await host.json('GET', '/api/agents', undefined, operator)
    const names = agents.map((one: { name: string }) => one.name)
    for (const name of ['away', 'netted', 'armed']) expect(names).not.toContain(name)
  })

  it('what the turns of a device made is told when it is removed, and nothing of others', async () => {
    const parent = await spawn(host, 'maker', '[capabilities]\ntools = ["agent_spawn"]\nagent_spawn = true\n')
    const [leaver, other] = [await pair(host, 'leaver'), await pair(host, 'other')]
    const make = async (name: string, who: Caller): Promise<void> => {
      const args = JSON.stringify({ manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\n` })
      await host.json('POST', `/api/agents/${parent}/message`, { message: `use agent_spawn ${args}` }, who)
    }
    await make('of-leaver', leaver.device)
    await make('of-other', other.device)
    const { body } = await host.json('DELETE', `/api/pairing/devices/${leaver.deviceId}`, undefined, operator)
    expect(body).toMatchObject({
      ok: true,
      effects: [{ event: 'agent_spawned', details: 'agent "of-leaver" spawned' }],
      effects_total: 1,
    })
    const { entries } = (await host.json('GET', '/api/audit/recent?event_type=pairing_changed', undefined, operator))
      .body
    expect(JSON.stringify(entries)).toContain('1 entries tell what it made, which stays')
    expect(body).toMatchObject({ stopped: [], staying: [{ kind: 'agent', name: 'of-leaver' }] })
    expect((await host.json('DELETE', `/api/pairing/devices/${other.deviceId}`, undefined, operator)).status).toBe(200)
  })

  it('what a device began is ended with it when that is asked for, with what its schedules made, and nothing of others', async () => {
    const tools = ['agent_spawn', 'schedule_create', 'trigger_create', 'task_post']
    const maker = await spawn(
      host,
      'busy-maker',
      `[capabilities]\ntools = ${JSON.stringify(tools)}\nagent_spawn = true\n`,
    )
    const [leaver, other] = [await pair(host, 'leaver'), await pair(host, 'other')]
    const say = async (who: Caller, ...calls: readonly (readonly [string, unknown])[]): Promise<void> => {
      const message = calls.map(([tool, args]) => `use ${tool} ${JSON.stringify(args)}`).join('\n')
      expect((await host.json('POST', `/api/agents/${maker}/message`, { message }, { ...who })).status).toBe(200)
    }
    const trigger = (text: string) => ({ pattern: { agent_spawned: { name_pattern: text } }, prompt_template: 'x' })
    const child = (name: string) => ({ manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\n` })
    const later = (description: string) => ({ description, schedule: 'daily at 9' })
    await say(
      leaver.device,
      ['agent_spawn', child('left-behind')],
      ['schedule_create', later(`use trigger_create ${JSON.stringify(trigger('by-a-schedule'))}`)],
      ['trigger_create', trigger('by-a-turn')],
      ['task_post', { title: 'left behind', description: '' }],
    )
    await say(other.device, ['schedule_create', later('hello')], ['trigger_create', trigger('of-another')])
    await spawn(host, 'of-the-operator')
    await say(operator, ['task_post', { title: 'kept', description: '' }])
    const ask = async (path: string, method = 'GET', body?: unknown, who: Caller = operator) =>
      (await host.json(method, path, body, { ...who })).body
    const { schedules } = await ask(`/api/schedules?agent_id=${maker}`)
    const made = schedules.find((one: { message?: string; action: { message?: string } }) =>
      JSON.stringify(one).includes('by-a-schedule'),
    )
    await ask(`/api/schedules/${made.id}/run`, 'POST')
    const { workflow_id: workflow } = await ask('/api/workflows', 'POST', {
      name: 'held',
      steps: [{ name: 'hold', type: 'wait', with: { event: 'never' } }],
    })
    const run = async (who: Caller): Promise<string> =>
      (await ask(`/api/workflows/${workflow}/run?wait=false`, 'POST', { input: '' }, who)).run_id
    const [runOfLeaver, runOfOther] = [await run(leaver.device), await run(other.device)]

    // A device may leave, and not decide about what lasts.
    const path = `/api/pairing/devices/${leaver.deviceId}`
    expect(await call('DELETE', `${path}?effects=stop`, undefined, leaver.device)).toBe(403)
    // What it leaves is named, and can be ended later.
    const { staying } = await ask(path, 'DELETE', undefined, leaver.device)
    expect(staying.map(({ kind }: { kind: string }) => kind)).toEqual([
      'agent',
      'schedule',
      'task',
      'trigger',
      'trigger',
      'workflow_run',
    ])
    const { stopped } = await ask(`${path}?effects=stop`, 'DELETE')
    expect(stopped).toEqual(staying)
    expect(await call('DELETE', `${path}?effects=stop`, undefined, operator)).toBe(404)

    const agents = await ask('/api/agents')
    const stateOf = (name: string) => agents.find((one: { name: string }) => one.name === name).state
    expect([stateOf('left-behind'), stateOf('of-the-operator'), stateOf('busy-maker')]).toEqual([
      'Stopped',
      'Running',
      'Running',
    ])
    const left = (await ask(`/api/schedules?agent_id=${maker}`)).schedules
    expect(left.map(({ enabled }: { enabled: boolean }) => enabled)).toEqual([false, true])
    const triggers = await ask(`/api/triggers?agent_id=${maker}`)
    const enabled = triggers.filter((one: { enabled: boolean }) => one.enabled)
    expect([triggers.length, JSON.stringify(enabled)]).toEqual([3, expect.stringContaining('of-another')])
    const { tasks } = await ask('/api/tasks')
    const statusOf = (title: string) => tasks.find((one: { title: string }) => one.title === title).status
    expect([statusOf('left behind'), statusOf('kept')]).toEqual(['cancelled', 'pending'])
    const runState = async (id: string): Promise<string> => (await ask(`/api/workflows/runs/${id}`)).state
    expect([await runState(runOfLeaver), await runState(runOfOther)]).toEqual([
      'Cancelled',
      expect.stringMatching(/Pending|Running/),
    ])
    const { entries } = await ask('/api/audit/recent?event_type=pairing_changed')
    expect(JSON.stringify(entries)).toContain(
      'what it began is ended: agent 1, schedule 1, task 1, trigger 2, workflow_run 1',
    )

    // All at once.
    const { stopped: others } = await ask(`/api/pairing/devices/${other.deviceId}?effects=stop`, 'DELETE')
    expect(others.map(({ kind }: { kind: string }) => kind)).toEqual(['schedule', 'trigger', 'workflow_run'])
    expect(await call('GET', '/api/agents', undefined, other.device)).toBe(401)
    expect(await runState(runOfOther)).toBe('Cancelled')
  })

  describe('an approval by a device', () => {
    const asking = (name: string): Promise<string> =>
      spawn(host, name, '[capabilities]\ntools = ["system_time"]\n[metadata]\napproval = "always"\n')
    /** The agent calls the tool; answered when the turn has ended. */
    const calls = (of: string) =>
      host.json('POST', `/api/agents/${of}/message`, { message: 'use system_time {}' }, operator)
    const pending = async (of: string): Promise<readonly { id: string }[]> =>
      (await host.json('GET', `/api/approvals?agent_id=${of}&status=pending`, undefined, operator)).body.approvals
    const open = async (of: string): Promise<string> =>
      (await host.json('POST', '/api/approvals', { agent_id: of, action: 'system_time', payload: {} }, operator)).body
        .id

    it('is for one call: the next one is asked about again, and for a session it is refused', async () => {
      const of = await asking('once')
      const { device } = await pair(host)
      const first = calls(of)
      await expect.poll(() => pending(of)).toHaveLength(1)
      const [{ id } = { id: '' }] = await pending(of)
      expect(await call('POST', `/api/approvals/${id}/approve`, { scope: 'session' }, device)).toBe(403)
      expect(await call('POST', `/api/approvals/${id}/approve`, undefined, device)).toBe(200)
      expect((await first).status).toBe(200)
      const second = calls(of)
      await expect.poll(() => pending(of)).toHaveLength(1)
      const [{ id: next } = { id: '' }] = await pending(of)
      expect(next).not.toBe(id)
      expect(await call('POST', `/api/approvals/${next}/reject`, undefined, operator)).toBe(200)
      await second
    })

    it('the turn of a device that waits for one ends with it when that is asked for', async () => {
      const of = await asking('waiting')
      const { device, deviceId } = await pair(host)
      const waiting = host.json('POST', `/api/agents/${of}/message`, { message: 'use system_time {}' }, { ...device })
      await expect.poll(() => pending(of)).toHaveLength(1)
      const path = `/api/pairing/devices/${deviceId}?effects=stop`
      const { stopped } = (await host.json('DELETE', path, undefined, operator)).body
      expect(stopped).toMatchObject([{ kind: 'turn', agent_id: of }])
      await waiting.catch(() => undefined)
      await expect
        .poll(async () => (await host.json('GET', `/api/turns/${stopped[0].id}`, undefined, operator)).body.state)
        .toBe('cancelled')
    })

    it('given before the agent asks passes one call while the device is paired, and none after its removal', async () => {
      const of = await asking('ahead')
      const { device, deviceId } = await pair(host)
      expect(await call('POST', `/api/approvals/${await open(of)}/approve`, undefined, device)).toBe(200)
      expect((await calls(of)).status).toBe(200)
      expect(await pending(of)).toEqual([])
      expect(await call('POST', `/api/approvals/${await open(of)}/approve`, undefined, device)).toBe(200)
      await remove(deviceId)
      const late = calls(of)
      await expect.poll(() => pending(of)).toHaveLength(1)
      const [{ id } = { id: '' }] = await pending(of)
      expect(await call('POST', `/api/approvals/${id}/reject`, undefined, operator)).toBe(200)
      await late
    })
  })

  describe('a secret that comes back as it is shown', () => {
    it('is neither stored nor taken away by its mask, wherever it is sent', async () => {
      const hook = { name: 'ci', url: 'https://example.com/hook', events: ['agent_spawned'], secret: 'a-real-secret' }
      const { body: made } = await host.json('POST', '/api/webhooks', hook, operator)
      const path = `/api/webhooks/${made.id}`
      expect(await call('PUT', path, { ...made, name: 'renamed' }, operator)).toBe(200)
      expect((await host.json('GET', path, undefined, operator)).body).toMatchObject({ name: 'renamed', secret: '***' })
      expect(await call('PUT', path, { secret: '' }, operator)).toBe(200)
      expect(await call('PUT', path, { secret: '***' }, operator)).toBe(400)
      expect((await host.json('GET', path, undefined, operator)).body.secret).toBe(null)
      expect(await call('POST', '/api/providers/openai/key', { api_key: '***' }, operator)).toBe(400)
      expect(await call('POST', '/api/providers/openai/key', { api_keys: ['***'] }, operator)).toBe(400)
    })
  })

  describe('a holder of the token of the hooks', () => {
    const body = JSON.stringify({ text: 'wake up' })
    const post = (path: string, sent: string, headers: Readonly<Record<string, string>>) =>
      host.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: sent })
    const status = async (sent: string, headers: Readonly<Record<string, string>>, path = '/api/hooks/wake') =>
      (await post(path, sent, headers)).status
    function signed(
      sent: string,
      { id = randomUUID() as string, seconds = Math.floor(Date.now() / 1000), key = TOKEN } = {},
    ) {
      const signature = `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${sent}`).digest('base64')}`
      return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signature }
    }

    it('opens nothing else with it, and the API key opens no hook', async () => {
      for (const [method, path] of [
        ['GET', '/api/agents'],
        ['GET', '/api/config'],
        ['POST', '/api/shutdown'],
        ['POST', '/api/auth/ws-ticket'],
      ] as const)
        expect([path, await call(method, path, undefined, toCaller(TOKEN))]).toEqual([path, 401])
      expect(await status(body, operator)).toBe(401)
      expect(await status(body, user)).toBe(401)
    })

    it('a command in a message of a hook is no command', async () => {
      const before = await detail()
      const sent = JSON.stringify({ message: '/model openai/gpt-5', agent: 'ada' })
      expect(await status(sent, toCaller(TOKEN), '/api/hooks/agent')).toBe(200)
      expect(await detail()).toEqual(before)
    })

    it('is told no signature for another id, time or body, nor one moved between them', async () => {
      const good = signed(body, { id: 'msg' })
      const time = good['webhook-timestamp']
      for (const [sent, headers] of [
        [body, { ...good, 'webhook-id': 'msg2' }],
        [body, { ...good, 'webhook-timestamp': String(Number(time) + 1) }],
        [JSON.stringify({ text: 'wake up!' }), good],
        [`${time}.${body}`, { ...good, 'webhook-id': 'msg', 'webhook-timestamp': '0' }],
        [body, { ...good, 'webhook-id': `msg.${time}` }],
        [body, { ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v1a,') }],
        [body, { ...good, 'webhook-signature': good['webhook-signature'].slice(0, -1) }],
        [body, { ...good, 'webhook-signature': '' }],
        [body, { ...good, 'webhook-signature': 'v1,' }],
      ] as const)
        expect([400, 401]).toContain(await status(sent, headers))
      expect(await status(body, good)).toBe(200)
    })

    it('a signature with the empty key, or of the secret of another webhook, is none', async () => {
      const other = {
        name: 'x',
        url: 'https://example.com/',
        events: ['agent_spawned'],
        secret: 'other-secret-of-32-characters-oo',
      }
      expect(await call('POST', '/api/webhooks', other, operator)).toBe(201)
      for (const key of ['', '\0', other.secret, 'the-operators-key'])
        expect(await status(body, signed(body, { key }))).toBe(401)
    })

    it('of several signatures one has to be right, and so many that guessing pays are not looked at', async () => {
      const good = signed(body)
      const wrong = `v1,${createHmac('sha256', 'x').update('y').digest('base64')}`
      const many = `${`${wrong} `.repeat(1_000)}${good['webhook-signature']}`
      expect(await status(body, { ...good, 'webhook-signature': many })).not.toBe(200)
      expect(await status(body, { ...good, 'webhook-signature': `${wrong} ${good['webhook-signature']}` })).toBe(200)
    })

    it('what was signed for one hook is not taken by the other', async () => {
      const sent = JSON.stringify({
        text: 'for the night',
        message: 'for the night',
        mode: 'next_heartbeat',
        agent: 'ada',
      })
      const headers = signed(sent)
      expect(await status(sent, headers)).toBe(200)
      expect(await status(sent, headers, '/api/hooks/agent')).toBe(409)
    })

    it('a signed request is carried out once, however often it comes', async () => {
      const sent = JSON.stringify({ text: 'only once', agent: 'ada' })
      const headers = signed(sent)
      const answers = await Promise.all(Array.from({ length: 5 }, () => post('/api/hooks/wake', sent, headers)))
      const bodies = await Promise.all(answers.map((answer) => answer.json() as Promise<{ id: string }>))
      expect(new Set(bodies.map(({ id }) => id)).size).toBe(1)
      const { id } = bodies[0] ?? { id: '' }
      const turns = async (): Promise<readonly { id: string }[]> =>
        (await host.json('GET', `/api/agents/${agent}/turns?limit=100`, undefined, operator)).body.turns
      await expect.poll(async () => (await turns()).filter((turn) => JSON.stringify(turn).includes(id)).length).toBe(1)
    })
  })

  it('the trail names nobody but the owner for what lasts, and everyone for what they did', async () => {
    const { device, deviceId } = await pair(host, 'named')
    expect(await call('POST', `/api/agents/${agent}/sessions`, { label: 'of a device' }, device)).toBe(201)
    const entries = await trail()
    const changes = entries.filter(({ event_type: event }) => ['agent_updated', 'config_change'].includes(event))
    expect(changes.filter(({ actor }) => /^(device|sign-in|webhook)/.test(actor))).toEqual([])
    expect(entries.some(({ actor }) => actor.startsWith(`device "named" (${deviceId})`))).toBe(true)
    expect(entries.some(({ actor }) => actor.startsWith('webhook token'))).toBe(true)
  })
})
