import { expect, it } from 'vitest'
import { peers } from './peers.ts'

it('two daemons find back to each other when one is killed, and a message is one turn however often it is sent', async () => {
  expect(await peers({ rounds: 1, built: false })).toMatchObject({ problems: [] })
})
