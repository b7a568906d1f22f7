import { expect, it } from 'vitest'
import { SessionStream } from '../../../plugins/chat/entry/session-stream.ts'
import { LiveTurn } from '../../../plugins/chat/turn/live-turn.ts'
import type { Message } from '../../../plugins/sessions/contract.ts'

it('who joins while a message is being written is shown what it says', async () => {
  const turn = new LiveTurn({
    id: 'turn-1',
    agentId: 'agent',
    sessionId: 'session',
    entryPoint: 'rest',
    options: {},
    resumed: false,
    resumable: false,
  })
  let stored: Message | undefined
  const stream = new SessionStream({
    turns: () => [turn],
    message: async () => stored,
    followedChanged: () => undefined,
    max: 4,
  })
  const onDisk = Promise.withResolvers<void>()
  turn.onDisk = onDisk.promise
  stream.accepted(turn, onDisk.promise)
  const leave = new AbortController()
  const target = { sessionId: 'session', agentId: 'agent', activeId: 'session' }
  const snapshot = stream.follow(target, leave.signal)[Symbol.asyncIterator]().next()
  await new Promise(setImmediate)
  stored = { id: 'message-1', blocks: [{ type: 'text', text: 'two' }] } as unknown as Message
  onDisk.resolve()
  expect((await snapshot).value).toMatchObject({ data: expect.stringContaining('"content":"two"') })
  leave.abort()
})
