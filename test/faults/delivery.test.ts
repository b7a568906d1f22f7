import { expect, it } from 'vitest'
import { delivery } from './delivery.ts'

it('every message of a chat is answered once, in order, although the daemon is killed and the platform fails', async () => {
  expect(await delivery({ messages: 40, kills: 2, seed: 7 })).toMatchObject({ messages: 40, problems: [] })
})
