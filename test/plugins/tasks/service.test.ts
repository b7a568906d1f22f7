import { describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import { engines, open } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { eventually } from '../../support/eventually.ts'
import { startDaemon, TWO, World } from './daemon.ts'

async function start(engine: EngineName, limits?: Record<string, unknown>) {
  const world = new World((await open(engine)).database)
  await world.prepare()
  return { world, clock: world.clock, ...startDaemon(world, limits) }
}

describe.each(engines)('the tasks on %s', (engine) => {
  it('go to one agent each, the oldest first, also with two daemons on one database', async () => {
    const { world, clock, tasks, events } = await start(engine)
    const other = startDaemon(world)
    const posted: string[] = []
    for (let n = 0; n < 6; n++) {
      posted.push((await tasks.post({ title: `task ${n}` })).id)
      clock.advance(1)
    }
    const { id: reserved } = await tasks.post({ title: 'for two', assignedTo: 'two' })
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? tasks : other.tasks).claim(`agent ${n}`)),
    )
    const taken = claims.flatMap((task) => (task ? [task] : []))
    expect(taken.map(({ id }) => id).toSorted()).toEqual(posted.toSorted())
    expect(new Set(taken.map(({ claimed_by }) => claimed_by)).size).toBe(6)
    expect(await tasks.claim(TWO)).toMatchObject({ id: reserved, attempts: 1 })
    // Whoever lost a race left neither an event nor an entry.
    const claimed = [...events, ...other.events].filter((event) => event.startsWith('claimed'))
    expect(claimed.toSorted()).toEqual([...posted, reserved].map((id) => `claimed ${id}:1`).toSorted())
    expect(await world.trail()).toBe(14)
  })

  it('are open again when their time is over, and fail at last', async () => {
    const limits = { claim_ttl_secs: 60, max_attempts: 2, retention_days: 1 }
    const { tasks, expiry, clock, events } = await start(engine, limits)
    const { id } = await tasks.post({ title: 'slow' })
    await tasks.claim('one')
    clock.advance(59_999)
    await expiry.sweep()
    expect(await tasks.require(id)).toMatchObject({ status: 'in_progress' })
    clock.advance(1)
    expect(await tasks.claim('two')).toMatchObject({ id, claimed_by: 'two' })
    await expect(tasks.complete(id, 'one', 'late')).rejects.toThrow('Another agent')
    clock.advance(60_000)
    await expiry.sweep()
    expect(await tasks.require(id)).toMatchObject({ status: 'failed', attempts: 2, lease_until: null })
    clock.advance(86_400_001)
    await expiry.sweep()
    expect(await tasks.find(id)).toBeUndefined()
    expect(events.map((event) => event.replace(id, 'it'))).toEqual([
      'posted it:0',
      'claimed it:1',
      'changed it:2',
      'claimed it:3',
      'changed it:4',
    ])
  })

  it('are refused beyond their limits, also at the same time, and what is refused leaves nothing', async () => {
    const limits = { max_open: 4, max_open_per_agent: 2, max_claimed_per_agent: 1, max_text_chars: 256 }
    const { world, tasks } = await start(engine, limits)
    const post = (agentId?: string) => tasks.post({ title: 'x', agentId }).catch((error: Error) => error.message)
    const first = await Promise.all(Array.from({ length: 5 }, () => post('one')))
    const refused = first.filter((answer) => typeof answer === 'string')
    expect(refused).toHaveLength(3)
    expect(refused[0]).toContain('plugins.tasks.max_open_per_agent')
    await post()
    await post('two')
    expect(await post()).toContain('plugins.tasks.max_open allows')
    expect(await world.trail()).toBe(4)
    await expect(tasks.post({ title: 'x', description: 'a'.repeat(257) })).rejects.toThrow('max_text_chars')
    const claims = await Promise.allSettled([tasks.claim('one'), tasks.claim('one')])
    expect(claims.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  it('are posted once by their id, and completed once', async () => {
    const { tasks, events } = await start(engine)
    const id = '11111111-1111-4111-8111-111111111111'
    await Promise.all([1, 2, 3].map(() => tasks.post({ id, title: 'once' })))
    await tasks.claim('one')
    const ends = await Promise.allSettled([1, 2, 3].map((n) => tasks.complete(id, 'one', `result ${n}`)))
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(events).toEqual([`posted ${id}:0`, `claimed ${id}:1`, `completed ${id}:2`])
  })

  it('wake the agent they are for, once, also when the daemon dies in between and its lease ends', async () => {
    const { world, clock, crash, ...first } = await start(engine, { claim_ttl_secs: 60 })
    const answer = Promise.withResolvers<string>()
    world.answer = () => answer.promise
    first.begin()
    const { id } = await first.tasks.post({ title: 'Sum', description: '1 + 1', assignedTo: 'two', labels: ['Pii'] })
    await eventually(async () => expect((await first.tasks.require(id)).status).toBe('in_progress'))
    await eventually(() => expect(world.turns.size).toBe(1))
    crash()
    clock.advance(3_600_000)
    const second = startDaemon(world, { claim_ttl_secs: 60 })
    // Nobody takes it away from the turn that goes on.
    await second.expiry.sweep()
    expect(await second.tasks.claim('thief')).toBeUndefined()
    second.begin()
    answer.resolve('2')
    await eventually(async () => expect((await second.tasks.require(id)).status).toBe('completed'))
    expect(await second.tasks.require(id)).toMatchObject({ result: '2', attempts: 1, claimed_by: TWO })
    const [[, turn] = []] = world.turns
    expect(world.turns.size).toBe(1)
    expect(turn).toMatchObject({ entryPoint: 'task', text: 'Sum\n\n1 + 1', labels: ['Pii', 'UserInput'] })
    // The job ends after the task.
    await eventually(async () => expect((await second.queue.find('task', `${id}:0`))?.state).toBe('done'))
  })

  it('wait while their agent cannot work, and try a failed turn again after a pause, so many times', async () => {
    const { world, clock, begin, tasks, idle } = await start(engine, { wake_retry_secs: 60, max_attempts: 2 })
    world.agents[0].state = 'Paused'
    begin()
    const { id } = await tasks.post({ title: 'x', assignedTo: TWO })
    const settle = async (ms: number) => {
      clock.advance(ms)
      await idle()
      // What was due at the end of that time.
      clock.advance(0)
      await idle()
      return tasks.require(id)
    }
    expect(await settle(0)).toMatchObject({ status: 'pending', attempts: 0 })
    world.agents[0].state = 'Running'
    world.refuse = new Refusal('service_unavailable', 'quiet hours', { retryAfterSecs: 600 })
    expect(await settle(60_000)).toMatchObject({ status: 'pending', attempts: 0 })
    world.refuse = undefined
    world.answer = () => Promise.reject(new Error('the model is overloaded'))
    expect(await settle(599_999)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await settle(1)).toMatchObject({ status: 'pending', attempts: 1 })
    expect(world.turns.size).toBe(1)
    expect(await settle(60_000)).toMatchObject({ status: 'failed', attempts: 2, result: 'the model is overloaded' })
    expect(world.turns.size).toBe(2)
    world.answer = () => Promise.resolve('at last')
    await tasks.retry(id)
    await idle()
    expect(await tasks.require(id)).toMatchObject({ status: 'completed', result: 'at last' })
  })

  it('are open again when their agent is stopped, and go on when it runs', async () => {
    const { world, clock, begin, tasks, idle } = await start(engine, { wake_retry_secs: 60 })
    const answer = Promise.withResolvers<string>()
    world.answer = () => answer.promise
    begin()
    const { id } = await tasks.post({ title: 'x', assignedTo: TWO })
    await eventually(() => expect(world.turns.size).toBe(1))
    world.agents[0].state = 'Stopped'
    for (const turn of world.turns.values()) turn.cancelled = true
    answer.resolve('half')
    await idle()
    expect(await tasks.require(id)).toMatchObject({ status: 'pending', claimed_by: null, result: null })
    world.agents[0].state = 'Running'
    world.answer = () => Promise.resolve('whole')
    clock.advance(60_000)
    await idle()
    clock.advance(0)
    await idle()
    expect(await tasks.require(id)).toMatchObject({ status: 'completed', result: 'whole', attempts: 2 })
  })

  it('fail when the daemon dies each time it works on them, and the audit trail tells', async () => {
    const { world, begin, crash, tasks } = await start(engine)
    world.answer = () => new Promise(() => {})
    begin()
    const { id } = await tasks.post({ title: 'deadly', assignedTo: TWO })
    await eventually(() => expect(world.turns.size).toBe(1))
    crash()
    const second = startDaemon(world)
    second.begin()
    const running = { state: 'running', losses: 1 }
    await eventually(async () => expect(await second.queue.find('task', `${id}:0`)).toMatchObject(running))
    second.crash()
    const third = startDaemon(world)
    third.begin()
    await eventually(async () => expect((await third.tasks.require(id)).status).toBe('failed'))
    expect(third.events).toEqual([`changed ${id}:2`])
    expect(await world.trail()).toBe(3)
  })

  it('stop the turn that works on them when they are cancelled, and keep the state', async () => {
    const { world, begin, tasks, queue, idle } = await start(engine)
    const answer = Promise.withResolvers<string>()
    world.answer = () => answer.promise
    begin()
    const { id } = await tasks.post({ title: 'x', assignedTo: TWO })
    await eventually(() => expect(world.turns.size).toBe(1))
    await tasks.cancel(id)
    expect([...world.turns.values()]).toMatchObject([{ cancelled: true }])
    answer.resolve('half')
    await idle()
    expect(await tasks.require(id)).toMatchObject({ status: 'cancelled', result: null })
    expect((await queue.find('task', `${id}:0`))?.state).toBe('done')
  })
})
