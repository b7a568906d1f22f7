import { expect, it } from 'vitest'
import { ServerAway } from 'svc/internal'
import { TurnAnswerer } from '../../../plugins/channels/inbox/turn-answerer.ts'
import type { Received, TurnAnswererDeps } from '../../../plugins/channels/inbox/turn-answerer.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { account, adapter, message } from './inbox-stage.ts'

const row = { id: 'turn-1', message: message('m'), attempts: 1, reason: null }
const received = { row, account, adapter, to: { chatId: 'c' } }

/** What becomes of a message whose turn is in this state when its result cannot be had. */
function answer(state: string, error: Error) {
  const said: string[] = []
  const answerer = new TurnAnswerer({
    turns: { find: async () => ({ state, error: 'the model refused' }) },
    outbox: { add: async ({ text }: { readonly text: string }) => (said.push(text), []) },
    connections: { find: () => undefined },
    clock: new ManualClock(),
    background: () => undefined,
    signal: new AbortController().signal,
  } as unknown as TurnAnswererDeps)
  const turn = { events: () => undefined, result: () => Promise.reject(error) }
  return {
    said,
    handled: answerer.answer(received as unknown as Received, 'agent', async () => turn as never),
  }
}

it('a turn that is done is no failure when the database does not say its result: the answer comes later', async () => {
  const { said, handled } = answer('done', new ServerAway('The database server does not answer', undefined))
  expect(await handled).toMatchObject({ outcome: 'postponed', reason: 'The database server does not answer' })
  expect(said).toEqual([])
})

it('a done turn whose answer cannot be prepared is tried again, and not said to have failed', async () => {
  const { said, handled } = answer('done', new Error('a hook failed'))
  await expect(handled).rejects.toThrow('a hook failed')
  expect(said).toEqual([])
})

it('a failed turn is answered with its reason', async () => {
  const { said, handled } = answer('failed', new Error('the model refused'))
  expect(await handled).toMatchObject({ outcome: 'answered' })
  expect(said).toEqual(['This could not be answered: the model refused.'])
})
