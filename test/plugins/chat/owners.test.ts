import { expect, it } from 'vitest'
import { openSharedChat } from '../../support/shared-chat.ts'

it('a message at another daemon is answered by the owner of its session, and its client gets the stream', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  fake.script({ text: 'It began', fault: 'stall' }, { text: ['A second', ' answer.'] })
  const first = one.post(`/api/agents/${one.agent}/message/stream`, { message: 'one' })
  await fake.request(0)
  const owner = await database.query('SELECT owner FROM chat_session_owner')
  const second = await two.post(`/api/agents/${one.agent}/message/stream`, { message: 'two' })
  expect(await database.query('SELECT state, owner FROM journal_turn ORDER BY id')).toBe(
    `running|${owner}\nqueued|${owner}`,
  )
  // The running turn is stopped where it does not run.
  expect(await (await two.post(`/api/agents/${one.agent}/stop`)).json()).toMatchObject({
    message: 'Agent run cancelled',
  })
  expect(await (await first).text()).toContain('"stop":"cancelled"')
  const answer = await second.text()
  expect(answer).toContain('"A second')
  expect(answer).toContain('"stop":"done"')
  expect(fake.requests).toHaveLength(2)
  const texts = (await two.session()).messages.map(({ content }) => content)
  expect(texts).toEqual(['one', 'It began', 'two', 'A second answer.'])
  // What nothing happens in is given up.
  for (let looks = 0; looks < 3; looks++) for (const { timer } of [one, two]) await timer.advance(5_000)
  expect(await database.query('SELECT count(*) FROM chat_session_owner')).toBe('0')
  expect(await database.query('SELECT count(*) FROM chat_relayed_turn')).toBe('0')
})
