import { describe, expect, it } from 'vitest'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import type { NewTurn, Trace } from '../../../plugins/journal/contract.ts'
import { migrations } from '../../../plugins/journal/migrations.ts'
import { Retention } from '../../../plugins/journal/retention.ts'
import { JournalService } from '../../../plugins/journal/service.ts'
import { JournalStore } from '../../../plugins/journal/store.ts'
import { TurnOwners } from '../../../plugins/journal/turn-owners.ts'

async function start(engine: EngineName) {
  const { database } = await open(engine)
  await database.migrate('journal', migrations)
  const { sql: db } = database
  let tick = 0
  /** The journal as another process opens it. */
  const store = new JournalStore(db, recorder().log)
  const retention = (days: number, traces: number, now: () => number) => new Retention(store, { days, traces }, now)
  const boot = (owner: string, wrote: (agentId: string, traces: number) => void = () => undefined) =>
    new JournalService(store, new TurnOwners({ store, id: owner }), () => new Date(tick++).toISOString(), { wrote })
  return { db, store, boot, retention }
}
const turn = (id: string, more: Partial<NewTurn> = {}): NewTurn => ({
  id,
  agentId: 'agent',
  sessionId: 'session',
  entryPoint: 'rest',
  onCrash: 'interrupt',
  options: '{}',
  onBehalf: ['asking'],
  createdAt: `2026-01-01T00:00:0${id}.000Z`,
  ...more,
})

describe.each(engines)('the journal on %s', (engine) => {
  it('takes over what a dead process left beside a turn that cannot be read', async () => {
    const { db, boot } = await start(engine)
    const dead = boot('dead')
    await db.batch(['1', '2'].map((id) => dead.accept(turn(id))))
    await db.run`UPDATE journal_turn SET failure = '{' WHERE id = '1'`
    const next = boot('next')
    expect((await next.orphans()).map(({ id }) => id)).toEqual(['2'])
    expect((await next.open()).map(({ id }) => id)).toEqual(['2'])
    expect((await next.turns('agent', 10)).map(({ id }) => id)).toEqual(['2'])
  })

  it('a turn is queued, moves, and stays in its end state', async () => {
    const { db, boot } = await start(engine)
    const journal = boot('one')
    await db.batch([journal.accept(turn('1'))])
    expect(await journal.find('1')).toEqual({ ...turn('1'), owner: 'one', state: 'queued', error: undefined })
    await db.batch([journal.move('1', 'running')])
    await db.batch([journal.move('1', 'failed', { error: 'the provider is gone' })])
    await db.batch([journal.move('1', 'done')])
    expect(await journal.find('1')).toMatchObject({ state: 'failed', error: 'the provider is gone' })
    expect(await journal.find('2')).toBeUndefined()
  })

  it('turns of a home whose column was still called door keep their entry point', async () => {
    const { database } = await open(engine)
    const before = migrations.slice(
      0,
      migrations.findIndex(({ id }) => id === '010-entry-point'),
    )
    await database.migrate('journal', before)
    const at = '2026-01-01T00:00:00.000Z'
    await database.sql.run`INSERT INTO journal_turn
        (id, agent_id, session_id, door, state, on_crash, options, owner, created_at, updated_at)
      VALUES ('1', 'agent', 'session', 'websocket', 'queued', 'resume', '{}', 'one', ${at}, ${at})`
    await database.migrate('journal', migrations)
    const store = new JournalStore(database.sql, recorder().log)
    const owners = new TurnOwners({ store, id: 'two' })
    const journal = new JournalService(store, owners, () => at, { wrote: () => undefined })
    expect(await journal.find('1')).toMatchObject({ id: '1', entryPoint: 'websocket', state: 'queued' })
    expect((await journal.orphans()).map(({ entryPoint }) => entryPoint)).toEqual(['websocket'])
    await database.sql.batch([journal.accept(turn('2', { entryPoint: 'sse' }))])
    expect(await journal.find('2')).toMatchObject({ entryPoint: 'sse' })
  })

  it('what never ended is handed to the next process once, oldest first', async () => {
    const { db, boot } = await start(engine)
    const first = boot('one')
    await db.batch([first.accept(turn('3')), first.accept(turn('1')), first.accept(turn('2')), first.accept(turn('4'))])
    await db.batch([first.move('1', 'running'), first.move('2', 'done')])
    expect(await first.orphans()).toEqual([])
    const second = boot('two')
    expect((await second.orphans()).map(({ id }) => id)).toEqual(['1', '3', '4'])
    expect(await second.orphans()).toEqual([])
  })

  it('a released turn is handed out again, to the same process too', async () => {
    const { db, boot } = await start(engine)
    const journal = boot('one')
    await db.batch([journal.accept(turn('1', { onCrash: 'resume', entryPoint: 'channel' }))])
    await db.batch([journal.release('1')])
    expect((await journal.orphans()).map(({ id, onCrash }) => [id, onCrash])).toEqual([['1', 'resume']])
    expect(await journal.orphans()).toEqual([])
  })

  it('turns of a living daemon are left to it, and those of one that died are taken over by one', async () => {
    const { db, store } = await start(engine)
    const daemon = (id: string) => {
      const owners = new TurnOwners({ store, id })
      return { owners, journal: new JournalService(store, owners, () => '2026-01-01T00:00:00.000Z') }
    }
    const [one, two, three] = [daemon('one/1'), daemon('two/1'), daemon('three/1')]
    const intent = one.journal.intend({ key: 'k', turnId: '1', kind: 'tool', name: 'send', input: '{}' })
    await db.batch([one.journal.accept(turn('1'), 'running'), one.journal.accept(turn('2')), intent])
    for (let beats = 0; beats < 6; beats++) {
      for (const { owners } of [one, two, three]) expect(await owners.beat()).toBe(0)
      expect(await two.journal.orphans()).toEqual([])
    }
    // The first one stands still, whatever its clock says.
    for (let beats = 0; beats < 2; beats++) for (const { owners } of [two, three]) expect(await owners.beat()).toBe(0)
    expect(await two.owners.beat()).toBe(1)
    expect(await three.owners.beat()).toBe(1)
    expect((await two.journal.effects('1')).map(({ state }) => state)).toEqual(['intent'])
    expect((await two.journal.orphans()).map(({ id }) => id)).toEqual(['1', '2'])
    expect((await two.journal.effects('1')).map(({ state }) => state)).toEqual(['unknown'])
    expect(await three.journal.orphans()).toEqual([])
    await db.batch([two.journal.move('1', 'done'), two.journal.move('2', 'done')])
    for (const { owners } of [one, two, three]) expect(await owners.beat()).toBe(0)
    expect(await store.heartbeats()).toEqual([])
  })

  it('one that beats again before it is taken over keeps its turns; those of its home are taken at once', async () => {
    const { db, store } = await start(engine)
    const daemon = (id: string) => {
      const owners = new TurnOwners({ store, id })
      return { owners, journal: new JournalService(store, owners, () => '2026-01-01T00:00:00.000Z') }
    }
    const [one, two] = [daemon('one/1'), daemon('two/1')]
    await db.batch([one.journal.accept(turn('1'))])
    await one.owners.beat()
    for (let beats = 0; beats < 4; beats++) await two.owners.beat()
    await one.owners.beat()
    expect(await two.journal.orphans()).toEqual([])
    expect((await daemon('one/2').journal.orphans()).map(({ id }) => id)).toEqual(['1'])
    expect(await store.heartbeats()).toEqual([])
  })

  it('an effect without a receipt is unknown after a crash, and the others keep their results', async () => {
    const { db, boot } = await start(engine)
    const journal = boot('one')
    const intent = (key: string) => journal.intend({ key, turnId: '1', kind: 'tool', name: 'send', input: '{}' })
    await db.batch([journal.accept(turn('1')), intent('a'), intent('b'), intent('c'), intent('a')])
    await db.batch([journal.settle('a', 'done', 'sent'), journal.settle('b', 'failed', 'no')])
    await db.batch([journal.settle('a', 'failed', 'a second receipt')])
    expect((await journal.effects('1')).map(({ key, state, result }) => [key, state, result])).toEqual([
      ['a', 'done', 'sent'],
      ['b', 'failed', 'no'],
      ['c', 'intent', undefined],
    ])
    await boot('two').orphans()
    expect((await journal.effects('1')).map(({ state }) => state)).toEqual(['done', 'failed', 'unknown'])
    expect(await journal.effects('2')).toEqual([])
  })

  const trace = (id: string, more: Partial<Trace> = {}): Trace => ({
    id,
    agentId: 'agent',
    sessionId: 'session',
    turnId: '1',
    kind: 'tool',
    name: 'look',
    iteration: 1,
    startedAt: '2026-01-01T00:00:00.000Z',
    durationMs: 1.5,
    failed: false,
    input: '{}',
    output: 'seen',
    ...more,
  })
  it('traces are told newest first, each as it was written', async () => {
    const { db, boot } = await start(engine)
    const journal = boot('one')
    const model = trace('2', {
      kind: 'model',
      name: 'openai/fake',
      tokens: { input: 3, output: 4 },
      firstMs: 0.25,
      failed: true,
      callId: undefined,
    })
    await db.batch([
      ...journal.trace([trace('1', { callId: 'c' }), model]),
      ...journal.trace([trace('3', { agentId: 'other' })]),
    ])
    expect(await journal.traces('agent', 10)).toEqual(
      [model, trace('1', { callId: 'c' })].map((each) => ({
        callId: undefined,
        firstMs: undefined,
        tokens: undefined,
        ...each,
      })),
    )
    expect(await journal.traces('agent', 1)).toHaveLength(1)
  })

  it('the traces of a last step lie with their turn and are told among the others', async () => {
    const { db, boot } = await start(engine)
    const journal = boot('one')
    const last = trace('2', { kind: 'model', name: 'openai/fake', tokens: { input: 3, output: 4 }, firstMs: 0.25 })
    await db.batch([journal.accept(turn('1')), ...journal.trace([trace('1'), trace('4')])])
    await db.batch([journal.move('1', 'done', undefined, [last, trace('3')])])
    await db.batch([journal.move('1', 'failed', { error: 'too late' }, [trace('5')])])
    expect((await journal.traces('agent', 10)).map(({ id, turnId }) => `${id} of ${turnId}`)).toEqual([
      '4 of 1',
      '3 of 1',
      '2 of 1',
      '1 of 1',
    ])
    expect((await journal.traces('agent', 3)).at(-1)).toEqual(last)
    expect(await journal.traces('other', 10)).toEqual([])
    await new JournalStore(db, recorder().log).forget('agent')
    expect(await journal.traces('agent', 10)).toEqual([])
  })

  it('keeps the newest traces of each agent, and those of others', async () => {
    const { db, boot, retention } = await start(engine)
    const keeper = retention(0, 5, () => 0)
    const journal = boot('one', (agentId, traces) => keeper.wrote(agentId, traces))
    for (let n = 10; n < 30; n++) await db.batch([...journal.trace([trace(String(n))])])
    await db.batch([...journal.trace([trace('05', { agentId: 'other' })])])
    await keeper.trim(new AbortController().signal)
    expect((await journal.traces('agent', 100)).map(({ id }) => id)).toEqual(['29', '28', '27', '26', '25'])
    expect(await journal.traces('other', 100)).toHaveLength(1)
  })

  it('counts nobody for ever who wrote little or is gone', async () => {
    const { db, boot, retention } = await start(engine)
    const keeper = retention(0, 1000, () => 0)
    const journal = boot('one', (agentId, traces) => keeper.wrote(agentId, traces))
    for (let n = 0; n < 50; n++) await db.batch([...journal.trace([trace(String(n), { agentId: `agent-${n}` })])])
    await keeper.trim(new AbortController().signal)
    expect(keeper.counted).toBe(50)
    keeper.forget('agent-0')
    expect(keeper.counted).toBe(49)
    await keeper.dropOld(new AbortController().signal)
    expect(keeper.counted).toBe(0)
    expect(await journal.traces('agent-0', 10)).toHaveLength(1)
  })

  it('forgets turns that ended long ago, and never one that has not', async () => {
    const { db, boot, retention } = await start(engine)
    const journal = boot('one')
    await db.batch([
      journal.accept(turn('1')),
      journal.accept(turn('2')),
      journal.move('1', 'done'),
      journal.intend({ key: '1:a', turnId: '1', kind: 'tool', name: 'look', input: '{}' }),
    ])
    await db.batch([...journal.trace([trace('1')])])
    await retention(30, 5, () => Date.parse('2026-01-20T00:00:00.000Z')).dropOld(new AbortController().signal)
    expect(await journal.traces('agent', 10)).toHaveLength(1)
    await retention(30, 5, () => Date.parse('2026-03-20T00:00:00.000Z')).dropOld(new AbortController().signal)
    expect(await journal.find('1')).toBeUndefined()
    expect(await journal.effects('1')).toEqual([])
    expect(await journal.find('2')).toMatchObject({ state: 'queued' })
    expect(await journal.traces('agent', 10)).toEqual([])
  })
})
