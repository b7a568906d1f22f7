import { afterEach, beforeEach, expect, it } from 'vitest'
import { open } from '../../core/storage/engines.ts'
import { startDaemon, World } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

const EAR = '01890000-0000-7000-8000-000000000001'
let world: World
let daemon: TestDaemon
beforeEach(async () => {
  const { database } = await open('sqlite')
  world = new World(database)
  await world.prepare()
  world.agents.push({ id: EAR, name: 'ear', state: 'Running' })
  start()
})
afterEach(() => daemon.stop())

function start(): void {
  daemon = startDaemon(world, {})
  daemon.begin()
}
/** Everything that happened is dealt with. */
async function settle(): Promise<void> {
  daemon.wake()
  for (let again = 0; again < 3; again++) await daemon.idle()
}
const outcomes = async (id: string) =>
  (await daemon.triggers.history(id, Number.MAX_SAFE_INTEGER, 100))
    .toReversed()
    .map(({ state, reason, error }) => reason ?? error ?? state)

it('the turn has the labels of the trigger and of the event', async () => {
  const labels = ['Pii'] as const
  await daemon.triggers.create({ agent_id: 'ear', pattern: 'lifecycle' }, undefined, { labels })
  world.append('agent_spawned', 'ann', 'agent "ann" spawned', 'trigger bob in 0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f')
  await settle()
  expect(world.labels).toEqual([['Pii', 'UntrustedAgent', 'ExternalNetwork']])
})

it('fires no more often than max_fires for events that are read together', async () => {
  const { id } = await daemon.triggers.create({ agent_id: 'ear', pattern: 'lifecycle', max_fires: 2 }, undefined)
  for (const name of ['a', 'b', 'c', 'd']) world.append('agent_spawned', name, `agent "${name}" spawned`)
  await settle()
  expect(await outcomes(id)).toEqual(['done', 'done'])
  expect(await daemon.triggers.require(id)).toMatchObject({ fireCount: 2, enabled: false })
})

it('fires beside one that cannot be read', async () => {
  const { id: bad } = await daemon.triggers.create({ agent_id: 'ear', pattern: 'lifecycle' }, undefined)
  const { id } = await daemon.triggers.create({ agent_id: 'ear', pattern: 'lifecycle' }, undefined)
  await world.database.sql.run`UPDATE triggers_trigger SET delivery = '[' WHERE id = ${bad}`
  world.append('agent_spawned', 'ann', 'agent "ann" spawned')
  await settle()
  expect(await outcomes(id)).toEqual(['done'])
  expect((await daemon.store.list(undefined, 10, 0)).map((one) => one.id)).toEqual([id])
})

it('a turn that had begun is followed, although the agent was paused before the daemon came back', async () => {
  const { id } = await daemon.triggers.create({ agent_id: 'ear', pattern: 'lifecycle' }, undefined)
  world.append('agent_spawned', 'ann', 'agent "ann" spawned')
  // The firing is on disk, and its turn; its end is not.
  daemon.crashAfter(1)
  await settle()
  daemon.crash()
  expect(world.begun).toHaveLength(1)
  world.agents[0].state = 'Paused'
  start()
  world.clock.advance(10_000)
  await daemon.renew()
  await settle()
  expect(await outcomes(id)).toEqual(['done'])
  expect(world.begun).toHaveLength(1)
})

it.each([
  [{ state: 'Completed', output: 'x' }, 'done'],
  [{ state: 'Cancelled', error: 'cancelled' }, 'the run was cancelled'],
  [{ state: 'Failed', error: 'broken' }, 'broken'],
])('of a run that ends as %o it records %s', async (run, outcome) => {
  world.workflows = { start: () => Promise.resolve(), find: () => Promise.resolve(run), resolve: () => 'flow' }
  const body = { agent_id: 'ear', pattern: 'lifecycle', workflow_id: 'flow' }
  const { id } = await daemon.triggers.create(body, undefined)
  world.append('agent_spawned', 'ann', 'agent "ann" spawned')
  await settle()
  expect(await outcomes(id)).toEqual([outcome])
})
