import { expect, it } from 'vitest'
import { Session } from '../../../plugins/mcp/connection/session.ts'
import type { SessionDeps } from '../../../plugins/mcp/connection/session.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('the time limit of a call stands still while a person is asked', async () => {
  const clock = new ManualClock()
  const signals: AbortSignal[] = []
  const client = {
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
    settings: { max_calls: 10 },
    calls: new Set(),
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
