import { expect, it } from 'vitest'
import { Session } from '../../../plugins/mcp/connection/session.ts'
import type { SessionDeps } from '../../../plugins/mcp/connection/session.ts'
import { ServerLog } from '../../../plugins/mcp/servers/log.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const noSettings = { max_calls: 10 }

it.each([
  ['nothing at all', () => new Promise<never>(() => undefined), true],
  ['a ping', () => Promise.resolve({}), false],
])('a program that does not answer a call in time answers %s after it', async (_, ping, isEnded) => {
  const clock = new ManualClock()
  const refuse = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const pings: AbortSignal[] = []
  const session = new Session({
    client: {
      request: (_request: unknown, { signal }: { readonly signal: AbortSignal }) => refuse(signal),
      ping: ({ signal }: { readonly signal: AbortSignal }) => (
        pings.push(signal),
        Promise.race([ping(), refuse(signal)])
      ),
    },
    clock,
    server: { name: 'files', timeout_secs: 10, transport: 'stdio' },
    settings: noSettings,
    calls: new Set(),
    log: new ServerLog(0),
    end: () => Promise.resolve(),
  } as unknown as SessionDeps)
  const late = session.listPrompts()
  clock.advance(10_000)
  await expect(late).rejects.toThrow('did not answer prompts/list within 10 s')
  expect(pings).toHaveLength(1)
  const next = session.listPrompts()
  clock.advance(5000)
  if (isEnded) expect(await session.closed).toBe('it does not answer any more')
  else clock.advance(5000)
  await expect(next).rejects.toThrow(isEnded ? 'it does not answer any more' : 'within 10 s')
  expect([session.isClosed, session.running]).toEqual([isEnded, 0])
})

it('the time limit of a call stands still while a person is asked', async () => {
  const clock = new ManualClock()
  const signals: AbortSignal[] = []
  const client = {
    ping: async () => ({}),
    request: (_request: unknown, { signal }: { readonly signal: AbortSignal }) =>
      new Promise((_resolve, reject) => {
        signals.push(signal)
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
  }
  const session = new Session({
    client,
    clock,
    server: { name: 'files', timeout_secs: 10, transport: 'stdio' },
    settings: noSettings,
    calls: new Set(),
    log: new ServerLog(0),
  } as unknown as SessionDeps)
  const call = session.listPrompts()
  const answer = Promise.withResolvers<string>()
  clock.advance(9000)
  const asking = session.pausedWhile(() => answer.promise)
  const during = session.listPrompts()
  clock.advance(3_600_000)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
  answer.resolve('Oslo')
  expect(await asking).toBe('Oslo')
  clock.advance(999)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
  clock.advance(1)
  await expect(call).rejects.toThrow('did not answer prompts/list within 10 s')
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  clock.advance(9000)
  await expect(during).rejects.toThrow('within 10 s')
  expect(clock.waiting).toBe(0)
})
