import { expect, it } from 'vitest'
import { openWorld } from './world.ts'

const MINUTE = 60_000
type World = Awaited<ReturnType<typeof openWorld>>

async function openOne(extensions = {}): Promise<World> {
  const world = await openWorld({}, extensions)
  await world.service.add({ template: 'linear', token: 'lin_1' })
  world.announced.length = 0
  return world
}
async function check({ clock, monitor, service }: World, times = 1): Promise<void> {
  for (let again = 0; again < times; again++) {
    clock.advance(MINUTE)
    await monitor.check(await service.checked())
  }
}
const stateOf = async ({ service }: World) => (await service.list())[0]?.state

it('is in error, with one alarm, when as many checks failed as its template allows, and recovers', async () => {
  await using world = await openOne({ auto_reconnect: false })
  await check(world)
  expect([await stateOf(world), world.monitor.health('linear')]).toMatchObject(['ready', { failures: 0 }])
  world.servers.silence = 'no answer in 10 s'
  await check(world, 2)
  expect([await stateOf(world), world.announced]).toEqual(['ready', []])
  await check(world, 5)
  expect([await stateOf(world), world.monitor.health('linear')]).toMatchObject([
    'error',
    { failures: 7, lastError: 'no answer in 10 s' },
  ])
  expect(world.announced).toEqual([
    { id: 'linear', template: 'linear', change: 'unhealthy', error: 'no answer in 10 s' },
  ])
  expect(world.trail.at(-1)).toBe('integration "linear" fails: no answer in 10 s')
  world.servers.silence = undefined
  await check(world)
  expect([await stateOf(world), world.announced.at(-1)?.change]).toEqual(['ready', 'recovered'])
  expect(world.counted.filter((one) => one.startsWith('alert'))).toEqual(['alert unhealthy', 'alert recovered'])
})

it('connects again with growing pauses, and gives up until a person connects', async () => {
  await using world = await openOne({ reconnect_max_attempts: 4, reconnect_max_backoff_secs: 240 })
  world.servers.states.set('linear', 'error')
  world.servers.failure = 'refused'
  const attempts: number[] = []
  for (let minute = 1; minute <= 30; minute++) {
    const before = world.servers.reconnects
    await check(world)
    if (world.servers.reconnects > before) attempts.push(minute)
  }
  // The pauses are 1, 2 and 4 minutes.
  expect(attempts).toEqual([1, 2, 4, 8])
  expect(world.monitor.health('linear')).toMatchObject({ attempts: 4, lastError: 'it ended' })
  world.servers.failure = undefined
  expect(await world.service.reconnect('linear')).toMatchObject({ state: 'ready' })
  expect(world.monitor.health('linear')).toMatchObject({ attempts: 0, failures: 0 })
})

it('starts no program that nobody uses, and waits for a person to sign in', async () => {
  await using world = await openOne()
  world.servers.silence = 'it was asked'
  for (const state of ['disconnected', 'login_required', 'disabled'] as const) {
    world.servers.states.set('linear', state)
    await check(world, 3)
  }
  expect(world.monitor.health('linear')).toMatchObject({ failures: 0, attempts: 0 })
  expect(await stateOf(world)).toBe('disabled')
})
