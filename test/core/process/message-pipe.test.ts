import { duplexPair } from 'node:stream'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { MessagePipe } from '../../../core/process/message-pipe.ts'

function open(maxBytes = 100) {
  const [near, far] = duplexPair()
  const messages: unknown[] = []
  const problem = Promise.withResolvers<string>()
  const pipe = new MessagePipe(near, {
    maxBytes,
    onMessage: (message) => void messages.push(message),
    onProblem: problem.resolve,
  })
  return { far, messages, problem: problem.promise, pipe }
}

it('reads messages however they arrive, and writes one a line', async () => {
  const { far, messages, pipe } = open()
  for (const piece of ['{"a"', ':1}\n[2', ']\n', '"ä"\n']) far.write(piece)
  await expect.poll(() => messages).toEqual([{ a: 1 }, [2], 'ä'])
  pipe.send({ back: 'here' })
  const [answer] = await once(far, 'data')
  expect(String(answer)).toBe('{"back":"here"}\n')
})

it.each([
  ['a message beyond its limit', `"${'x'.repeat(99)}"\n`, 'it sent a message of more than 100 bytes'],
  ['a message beyond its limit that does not end', 'x'.repeat(101), 'it sent a message of more than 100 bytes'],
  ['what is no JSON', 'hello\n', 'it sent a message that is no JSON'],
  ['what is nested too deeply', `${'['.repeat(600)}\n`, 'it sent a message that is no JSON', 1_000],
])('ends with %s, and reads nothing after it', async (_, text, reason, maxBytes = 100) => {
  const { far, messages, problem } = open(maxBytes)
  far.on('error', () => undefined)
  far.write(`1\n${text}2\n`)
  expect(await problem).toBe(reason)
  expect(messages.filter((message) => message !== 1)).toEqual([])
})
