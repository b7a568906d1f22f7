import { expect, it } from 'vitest'
import type { Destination } from 'svc/channels'
import { ServerAway } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { TurnAnswerer } from '../../../plugins/channels/inbox/turn-answerer.ts'
import type { Received, TurnAnswererDeps } from '../../../plugins/channels/inbox/turn-answerer.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { account, adapter, message } from './inbox-stage.ts'

const NO_KEY = 'Provider openai has no key: set OPENAI_API_KEY, or [providers.openai] api_key'
const row = { id: 'turn-1', message: message('m'), attempts: 1, reason: null }
const received = { row, account, adapter, to: { chatId: 'c' } }

/** What becomes of a message whose turn is in this state when its result cannot be had. */
function answer(state: string | undefined, error: Error) {
  const said: string[] = []
  const told: string[] = []
  const answerer = new TurnAnswerer({
    turns: {
      find: async () => state && { state, error: NO_KEY, failure: { code: 'service_unavailable', retryable: true } },
    },
    outbox: { add: async ({ text }: { readonly text: string }) => (said.push(text), []) },
    unanswered: (_account: unknown, problem: string) => told.push(problem),
    connections: { find: () => undefined },
    clock: new ManualClock(),
    background: () => undefined,
    signal: new AbortController().signal,
  } as unknown as TurnAnswererDeps)
  const turn = { events: () => undefined, result: () => Promise.reject(error) }
  return {
    said,
    told,
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

it('a failed turn is answered without the settings that its reason names, which the operator is told', async () => {
  const { said, told, handled } = answer('failed', new Error(NO_KEY))
  expect(await handled).toMatchObject({ outcome: 'answered' })
  expect(said).toEqual([
    'This could not be answered. The agent is not available at the moment. The owner of this bot can see why. ' +
      '/retry asks again.',
  ])
  expect(told).toEqual([`a message in chat chat-1 was not answered: ${NO_KEY}`])
})

it('a message that is refused is answered without the settings that its reason names', async () => {
  const refused = new Refusal('conflict', 'The price is unknown: set [budget] unknown_price = "allow".')
  const { said, told, handled } = answer(undefined, refused)
  expect(await handled).toMatchObject({ outcome: 'answered' })
  expect(said.join()).toMatch(/^This could not be answered\. The agent takes no messages[^[]*$/)
  expect(told.join()).toContain('[budget] unknown_price')
})

it('the typing indicator is shown while an answer takes its time, and not for one that comes at once', async () => {
  const clock = new ManualClock()
  const typed: string[] = []
  const typing = async ({ chatId }: Destination): Promise<void> => void typed.push(chatId)
  const open = { adapter: { capabilities: { typing: { repeatMs: 4_000 } } }, connection: { typing } }
  const ended = Promise.withResolvers<never>()
  const answerer = new TurnAnswerer({
    turns: { find: async () => ({ state: 'failed', error: 'the model refused' }) },
    unanswered: () => undefined,
    outbox: { add: async () => [] },
    connections: { find: () => open },
    clock,
    background: (work: () => Promise<void>) => void work(),
    signal: new AbortController().signal,
  } as unknown as TurnAnswererDeps)
  const answer = (result: Promise<never>) =>
    answerer.answer(received as unknown as Received, 'agent', async () => ({ result: () => result }) as never)
  await answer(Promise.reject(new Error('at once')))
  clock.advance(10_000)
  expect([typed, clock.waiting]).toEqual([[], 0])
  const slow = answer(ended.promise)
  clock.advance(5_000)
  expect(typed).toEqual(['c', 'c'])
  ended.reject(new Error('later'))
  await slow
  clock.advance(10_000)
  expect([typed, clock.waiting]).toEqual([['c', 'c'], 0])
})
