import { expect, it } from 'vitest'
import { RemoteTurns } from '../../../plugins/chat/owners/remote-turns.ts'
import type { Turn } from '../../../plugins/journal/contract.ts'

it('a turn that is being written for another daemon is not taken for one that is gone', async () => {
  const works: Promise<void>[] = []
  const known: Turn | undefined = undefined
  const remote = new RemoteTurns({
    broadcast: { send: () => undefined },
    cluster: { self: 'here', isAlive: () => true },
    journal: { find: () => Promise.resolve(known) },
    attach: () => undefined,
    recorded: () => Promise.reject(new Error('there is no such turn')),
    background: (work) => void works.push(work()),
    log: { warn: () => undefined },
  })
  const turn = remote.follow({ id: 't', agentId: 'a', sessionId: 's', entryPoint: 'rest' }, 'there', true)
  turn.isBeingWritten = true
  remote.look()
  await Promise.all(works)
  expect([turn.hasEnded, remote.size]).toEqual([false, 1])
  turn.isBeingWritten = false
  remote.look()
  await Promise.all(works)
  expect(remote.size).toBe(0)
  await expect(turn.result()).rejects.toThrow('there is no such turn')
})
