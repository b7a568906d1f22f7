import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import type { Json } from '../../support/json.ts'
import { open } from '../../core/storage/engines.ts'
import { startDaemon, WallClock, World } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

const MINUTE = 60_000
let world: World
let daemons: TestDaemon[]
beforeEach(async () => {
  const { database } = await open('sqlite')
  world = new World(database, new WallClock('2026-03-02T09:00:30Z'))
  await world.prepare()
  daemons = []
})
afterEach(async () => {
  for (const daemon of daemons) await daemon.stop()
})

const start = async (settings = {}, queue = {}): Promise<TestDaemon> => {
  const daemon = startDaemon(world, settings, queue)
  daemons.push(daemon)
  daemon.begin()
  await daemon.idle()
  return daemon
}
const pass = async (minutes: number): Promise<void> => {
  for (let left = minutes * MINUTE; left > 0; left -= MINUTE / 4) {
    world.clock.advance(MINUTE / 4)
    for (let again = 0; again < 3; again++) for (const daemon of daemons) await daemon.idle()
  }
}
/** Moves on until something has happened: while a turn hangs, a daemon is never idle. */
const passUntil = async (hasHappened: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await hasHappened())) {
    world.clock.advance(MINUTE / 4)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  }
}
const crash = (daemon: TestDaemon): void => {
  daemon.crash()
  daemons = daemons.filter((one) => one !== daemon)
}
const told = async (daemon: TestDaemon, id: string): Promise<string[]> =>
  (await daemon.slots(id)).map(({ state, reason, error, result }) =>
    [reason ?? state, error ?? result].filter((part) => part !== undefined).join(': '),
  )

/** Runs of workflows as their plugin keeps them. */
class Runs {
  readonly rows = new Map<string, Json>()
  readonly starts: Json[] = []
  readonly cancels: string[] = []
  failing: unknown
  async start(run: Json): Promise<void> {
    if (this.failing) throw this.failing
    this.starts.push(run)
    if (!this.rows.has(run.id)) this.rows.set(run.id, { ...run, state: 'Running' })
    await Promise.resolve()
  }
  find = (id: string) => Promise.resolve(this.rows.get(id))
  allowed: readonly string[] = []
  resolve = (name: string, agentId?: string) =>
    agentId === undefined || this.allowed.includes(agentId)
      ? Promise.resolve(name === 'digest' ? 'workflow-1' : name)
      : Promise.reject(new Refusal('forbidden', `${agentId} may not run it`))
  cancel = (id: string, reason: string) => {
    this.cancels.push(reason)
    return Promise.resolve(this.end(id, { state: 'Cancelled', error: `cancelled: ${reason}` }))
  }
  end = (id: string, end: Json): boolean => {
    this.rows.set(id, { ...this.rows.get(id), ...end })
    return true
  }
  /** Ends the run of the latest slot, and tells the queue as the hook does. */
  async endLast(daemon: TestDaemon, end: Json): Promise<void> {
    const id = this.starts.at(-1).id
    this.end(id, end)
    await daemon.queue.hurry('schedule', id)
    await daemon.idle()
  }
}

describe('a schedule with a workflow', () => {
  const action = { kind: 'workflow', workflow_id: 'digest', input: 'cats' }
  const webhook = { kind: 'webhook', url: 'https://hooks.example.com/' }
  let runs: Runs
  beforeEach(() => {
    runs = new Runs()
    world.workflows = runs
  })

  it('starts one run for a slot, holds no place in the lane meanwhile, and delivers the output', async () => {
    const daemon = await start({}, { concurrency: { schedule: 1 } })
    const { id } = await daemon.add({ prompt: undefined, action, delivery: webhook })
    const other = await daemon.add({ schedule: '12 * * * *' })
    await pass(13)
    expect(runs.starts).toEqual([
      { id: expect.any(String), workflowId: 'workflow-1', input: 'cats', cause: `schedule ${id}`, hops: 0 },
    ])
    // The only place of the lane was free for it.
    expect(await told(daemon, other.id)).toEqual(['done: done: Report'])
    world.delivered.length = 0
    await runs.endLast(daemon, { state: 'Completed', output: 'about cats' })
    expect(await told(daemon, id)).toEqual(['done: about cats'])
    expect((await daemon.slots(id))[0]).toMatchObject({ workflowRunId: runs.starts[0].id })
    expect(world.delivered).toMatchObject([{ target: webhook, text: 'about cats' }])
    expect(await daemon.job(id)).toMatchObject({ lastStatus: 'ok', failures: 0 })
  })

  it('goes on with the same run after a crash', async () => {
    const first = await start()
    const { id } = await first.add({ prompt: undefined, action })
    // Killed when the run is on disk and the slot does not know it yet.
    runs.start = (run) => {
      runs.rows.set(run.id, { ...run, state: 'Running' })
      runs.starts.push(run)
      crash(first)
      return new Promise(() => {})
    }
    await passUntil(() => runs.starts.length > 0)
    const second = await start()
    await pass(1)
    expect(runs.starts).toHaveLength(1)
    await runs.endLast(second, { state: 'Completed', output: 'once' })
    expect(await told(second, id)).toEqual(['done: once'])
  })

  it.each([
    ['a failed run is a failure', { state: 'Failed', error: 'step "a" failed' }, 'failed: step "a" failed', 1],
    ['a cancelled one is none', { state: 'Cancelled', error: 'by hand' }, 'cancelled: by hand', 0],
  ])('%s', async (_, end, slot, failures) => {
    const daemon = await start()
    const { id } = await daemon.add({ prompt: undefined, action })
    await pass(10)
    await runs.endLast(daemon, end)
    expect(await told(daemon, id)).toEqual([slot])
    expect(await daemon.job(id)).toMatchObject({ failures })
  })

  it('cancels a run that takes too long, and that of a removed schedule', async () => {
    const daemon = await start()
    const { id } = await daemon.add({ prompt: undefined, action: { ...action, timeout_secs: 120 } })
    await pass(13)
    expect(await told(daemon, id)).toEqual(['failed: it took longer than 120 seconds'])
    expect(runs.cancels).toEqual(['it took longer than 120 seconds'])
    await pass(8)
    await daemon.schedules.remove('schedule_not_found', id)
    expect(runs.cancels.at(-1)).toBe(`schedule ${id} "cats" was removed`)
  })

  it('cancels the run of a slot whose job of the queue was cancelled', async () => {
    const daemon = await start()
    const { id } = await daemon.add({ prompt: undefined, action })
    await pass(10)
    await daemon.queue.cancel('schedule', runs.starts[0].id)
    await pass(10)
    expect(runs.cancels).toEqual(['the slot of its schedule was cancelled'])
    expect(await told(daemon, id)).toEqual(['cancelled', 'open'])
  })

  it('fails when its workflow is gone, and waits when there are too many runs', async () => {
    const daemon = await start({}, { max_failures: 1 })
    const { id } = await daemon.add({ prompt: undefined, action })
    runs.failing = new Refusal('workflow_not_found', 'There is no workflow workflow-1')
    await pass(10)
    runs.failing = new Refusal('rate_limit', 'too many runs', { retryAfterSecs: 10 })
    await pass(10)
    expect(await told(daemon, id)).toEqual(['failed: There is no workflow workflow-1', 'open'])
    runs.failing = undefined
    await pass(1)
    await runs.endLast(daemon, { state: 'Completed', output: 'late' })
    expect((await told(daemon, id)).at(-1)).toBe('done: late')
  })

  it('of an agent is one that the agent may have run, also when the slot comes', async () => {
    const daemon = await start()
    const body = { agent_id: 'scout', schedule: '*/10 * * * *', action }
    const make = (agentId?: string) =>
      daemon.schedules.create(body as Json, undefined, agentId === undefined ? {} : { agentId })
    runs.allowed = []
    await expect(make('agent-1')).rejects.toThrow('may not run it')
    runs.allowed = ['agent-1']
    const { id } = await make('agent-1')
    await pass(10)
    expect(runs.starts).toMatchObject([{ agentId: 'agent-1', cause: `agent agent-1 (schedule ${id})` }])
    await runs.endLast(daemon, { state: 'Completed', output: 'cats' })
    runs.allowed = []
    await pass(10)
    expect(await told(daemon, id)).toEqual(['done: cats', 'failed: agent-1 may not run it'])
    world.workflows = undefined
    await expect(make()).rejects.toThrow('the plugin "workflows" is not loaded')
  })

  it('may be written with workflow_id and a prompt', async () => {
    const daemon = await start()
    const { id, action: made } = await daemon.add({ workflow_id: 'digest', prompt: 'dogs' })
    expect(made).toEqual({ kind: 'workflow', workflow_id: 'workflow-1', input: 'dogs' })
    const { action: changed } = await daemon.schedules.change('schedule_not_found', id, { prompt: 'cats' })
    expect(changed).toEqual({ kind: 'workflow', workflow_id: 'workflow-1', input: 'cats' })
    const both = { workflow_id: 'digest', action: { kind: 'system_event', text: 'x' } }
    await expect(daemon.add({ ...both, prompt: undefined })).rejects.toThrow('workflow_id: the action is of the kind')
  })
})

it('a run by hand that another daemon does is answered, and one that was removed too', async () => {
  const asked = startDaemon(world)
  daemons.push(asked)
  const other = await start()
  const job = await asked.add({})
  const { signal } = new AbortController()
  /** The other daemon looks for work, and no minute passes. */
  const until = async (hasHappened: () => boolean): Promise<void> => {
    while (!hasHappened()) {
      other.queue.poll()
      world.clock.advance(10)
      await new Promise(setImmediate)
    }
  }
  let end: unknown
  void asked.manual.run(job, signal).then((slot) => (end = slot.result))
  await until(() => end !== undefined)
  expect(end).toBe('done: Report')
  world.answer = () => new Promise(() => {})
  const refused = expect(asked.manual.run(job, signal)).rejects.toThrow('This schedule was removed while it ran')
  await until(() => world.begun.length === 2)
  await asked.schedules.remove('schedule_not_found', job.id)
  await refused
  await other.queue.renew()
  await other.idle()
})

it('a run by hand that takes longer than run_wait_secs is asked for again: at once, and its result later', async () => {
  const daemon = await start({ run_wait_secs: 60 })
  const job = await daemon.add({})
  const { promise, resolve } = Promise.withResolvers<string>()
  world.answer = () => promise
  const { signal } = new AbortController()
  const first = expect(daemon.manual.run(job, signal, 'key')).rejects.toMatchObject({ code: 'service_unavailable' })
  await passUntil(() => world.begun.length === 1)
  world.clock.advance(61_000)
  await first
  await expect(daemon.manual.find(job, signal, 'key')).rejects.toThrow('plugins.schedules.run_wait_secs')
  resolve('At last.')
  await daemon.idle()
  expect(await daemon.manual.find(job, signal, 'key')).toMatchObject({ state: 'done', result: 'At last.' })
  expect(await daemon.manual.find(job, signal, 'other')).toBeUndefined()
})

describe('a system event', () => {
  const action = { kind: 'system_event', text: 'The day begins' }
  const isTold = (event: Json): boolean => event.text === action.text

  it('is told to listeners with an id of its slot, again after a crash before its end is written', async () => {
    const first = await start()
    const { id } = await first.add({ prompt: undefined, action })
    world.listen = () => new Promise(() => {})
    await passUntil(() => first.events.some(isTold))
    crash(first)
    world.listen = () => Promise.resolve()
    const second = await start()
    await pass(1)
    const [before, after] = [first, second].map(({ events }) => events.filter(isTold))
    expect(before).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        jobId: id,
        name: 'The day begins',
        agentId: 'agent-1',
        text: 'The day begins',
        labels: [],
        slot: '2026-03-02T09:10:00.000Z',
      },
    ])
    expect(after?.map((event) => event.id)).toContain(before?.[0].id)
    expect(await told(second, id)).toEqual(['done: The day begins'])
    expect(world.begun).toEqual([])
  })
})

describe('a slot', () => {
  it('whose job of the queue is dead counts as a failure, which disables in the end', async () => {
    const daemon = await start({ max_failures: 2 }, { max_failures: 1 })
    const action = { kind: 'system_event', text: 'The day begins' }
    const delivery = { kind: 'webhook', url: 'https://hooks.example.com/' }
    const { id } = await daemon.add({ prompt: undefined, action, delivery })
    world.listen = () => Promise.reject(new Error('the listener is broken'))
    await pass(21)
    expect(await told(daemon, id)).toEqual(['failed: the listener is broken', 'failed: the listener is broken'])
    expect(await daemon.job(id)).toMatchObject({
      enabled: false,
      failures: 2,
      reason: 'disabled after 2 failures in a row',
      lastStatus: 'error: the listener is broken',
    })
    expect(daemon.events.at(-1)).toMatchObject({ jobId: id, failures: 2, error: 'the listener is broken' })
    expect(world.delivered.map(({ event }) => event)).toEqual(['schedule.disabled'])
  })

  it.each(['rate_limit', 'service_unavailable'] as const)(
    'that is refused as %s waits for room, however long, which is no failure',
    async (code) => {
      const daemon = await start({}, { max_failures: 1 })
      const { id } = await daemon.add({})
      world.refuse = new Refusal(code, 'the session is full')
      await pass(18)
      expect(await told(daemon, id)).toEqual(['open'])
      expect(world.asked).toBeGreaterThan(10)
      world.refuse = undefined
      await pass(1)
      expect(await told(daemon, id)).toEqual(['done: done: Report'])
      expect(await daemon.job(id)).toMatchObject({ enabled: true, failures: 0, lastStatus: 'ok' })
    },
  )

  it('whose daemon dies each time counts as a failure', async () => {
    const { id } = await (await start()).add({})
    world.answer = () => new Promise(() => {})
    world.isStuck = true
    let [daemon] = daemons as [TestDaemon]
    for (let times = 1; times <= 3; times++) {
      await passUntil(() => world.asked === times)
      crash(daemon)
      daemon = startDaemon(world, {}, { max_losses: 3 })
      daemons.push(daemon)
      daemon.begin()
    }
    await daemon.idle()
    expect(await told(daemon, id)).toEqual(['failed: the daemon that worked on it stopped (3 times)'])
    expect(await daemon.job(id)).toMatchObject({ failures: 1 })
  })

  it('that waits while its agent is removed does not run, and says why', async () => {
    const daemon = await start({}, { concurrency: { schedule: 1 } })
    const running = await daemon.add({})
    const waiting = await daemon.add({ schedule: '11 * * * *' })
    const { promise, resolve } = Promise.withResolvers<string>()
    world.answer = () => promise
    await passUntil(async () => (await daemon.slots(waiting.id)).length > 0)
    // What the plugin adds to the batch that removes an agent.
    await daemon.jobs.commit([daemon.jobs.endOf('agent-1', world.clock.now())])
    Object.assign(world.agent, { id: 'another' })
    resolve('the last words')
    await daemon.idle()
    expect(await told(daemon, running.id)).toEqual(['done: the last words'])
    expect(await told(daemon, waiting.id)).toEqual(['agent_removed'])
    expect((await daemon.slots(waiting.id))[0]).toMatchObject({ detail: 'its agent was removed' })
    expect(world.begun).toHaveLength(1)
  })

  it('whose turn takes longer than timeout_secs is stopped, which is a failure', async () => {
    const daemon = await start()
    const turn = { kind: 'agent_turn', message: 'Think.', timeout_secs: 60 }
    const { id } = await daemon.add({ prompt: undefined, action: turn })
    world.answer = () => new Promise(() => {})
    await passUntil(async () => (await daemon.job(id)).failures > 0)
    expect(await told(daemon, id)).toEqual(['failed: it took longer than 60 seconds'])
    expect([...world.turns.values()]).toMatchObject([{ state: 'cancelled' }])
  })

  it('that a sleeping laptop missed is recorded with the reason, one late run makes up for all, and none is a fault', async () => {
    const daemon = await start()
    const [skip, once] = [await daemon.add({ missed: 'skip' }), await daemon.add({ missed: 'once' })]
    // Eight hours: a timer of the machine stood still meanwhile.
    world.clock.set('2026-03-02T17:07:00Z')
    await pass(1)
    const [skipped, made] = [await daemon.slots(skip.id), await daemon.slots(once.id)]
    expect(new Set(skipped.map(({ reason }) => reason))).toEqual(new Set(['missed']))
    expect(skipped).toHaveLength(48)
    expect(made.slice(0, -1).every(({ reason, detail }) => reason === 'superseded' && detail?.includes('17:00'))).toBe(
      true,
    )
    expect(made.at(-1)).toMatchObject({ state: 'done', slotAt: Date.parse('2026-03-02T17:00:00Z') })
    expect(made.at(-1)?.lateMs).toBeGreaterThan(7 * MINUTE)
    const events = daemon.events.filter(({ jobId, state }) => jobId === skip.id && state === 'skipped')
    expect(events).toHaveLength(48)
    expect(events[0]).toMatchObject({ slot: '2026-03-02T09:10:00.000Z', error: expect.stringMatching(/^missed: /) })
    expect(world.begun).toHaveLength(1)
    for (const { id } of [skip, once]) expect(await daemon.job(id)).toMatchObject({ failures: 0, enabled: true })
  })

  it('that runs goes on by itself when the daemon stops', async () => {
    const daemon = await start()
    const { id } = await daemon.add({})
    world.answer = () => new Promise(() => {})
    await passUntil(() => world.begun.length > 0)
    crash(daemon)
    await daemon.stop()
    expect([...world.turns.values()]).toMatchObject([{ state: 'running' }])
    expect(await told(daemon, id)).toEqual(['open'])
  })

  it('whose turn has begun keeps its result, although its agent was paused before the daemon came back', async () => {
    const daemon = await start()
    const { id } = await daemon.add({})
    world.answer = () => new Promise(() => {})
    await passUntil(() => world.begun.length > 0)
    crash(daemon)
    world.agent.state = 'Paused'
    const next = await start()
    await next.idle()
    expect(await told(next, id)).toEqual(['done: done: Report'])
    expect(world.begun).toHaveLength(1)
  })

  it('says with its labels where the words of its schedule came from', async () => {
    const daemon = await start()
    const body = { agent_id: 'scout', prompt: 'Obey', schedule: '*/10 * * * *' }
    await daemon.schedules.create(body, undefined, { agentId: 'other', labels: ['UntrustedAgent'] })
    await pass(10)
    expect(world.labels).toEqual([['UntrustedAgent']])
  })

  it('that runs is stopped when its schedule is removed', async () => {
    const daemon = await start()
    const { id } = await daemon.add({})
    world.answer = () => new Promise(() => {})
    await passUntil(() => world.begun.length > 0)
    await daemon.schedules.remove('schedule_not_found', id)
    await daemon.idle()
    expect([...world.turns.values()]).toMatchObject([{ state: 'cancelled' }])
    expect(await daemon.jobs.find(id)).toBeUndefined()
    expect(world.delivered).toEqual([])
  })
})
