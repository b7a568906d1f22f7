import type { Finding, ProbeCase } from '../security/contract.ts'
import { frame, FrameReader, OPEN_BYTES } from './frames.ts'
import { answer, call } from './handshake.ts'
import type { Link, Side } from './handshake.ts'
import { LinkRefusal } from './mac.ts'
import { Replays } from './replays.ts'

/** Two nodes in this process, over the messages they would send (security facts 1.13). */
export async function probe(listens = false): Promise<Finding> {
  let clock = 1_700_000_000_000
  const secret = 'a secret of this probe, long enough to be one'
  const node = (self: string, own = secret): Side => ({ secret: own, self, now: () => clock })
  const replays = new Replays()
  const [alice, bob] = [node('alice'), node('bob')]

  const calling = call(alice, 'bob')
  const answering = answer(bob, replays, calling.hello)
  const done = calling.accept(answering.challenge)
  const [ours, theirs] = [done.link, answering.accept(done.proof)]
  const cases: ProbeCase[] = [
    { name: 'two nodes with the same secret are linked', passed: ours.peer === 'bob' && theirs.peer === 'alice' },
    {
      name: 'a frame arrives as it was sent',
      passed: pass(ours, theirs, 'hello') === 'hello' && pass(theirs, ours, 'back') === 'back',
    },
    { name: 'a call made twice is refused', passed: isRefused(() => answer(bob, replays, calling.hello), 403) },
    {
      name: 'a caller with another secret is refused',
      passed: isRefused(() => answer(bob, replays, call(node('alice', `${secret}!`), 'bob').hello), 403),
    },
    { name: 'a callee with another secret is refused', passed: wrongCallee(alice, node('bob', `${secret}!`)) },
    { name: 'a call sent back as its own answer is refused', passed: reflected(alice) },
    {
      name: 'a call for another node is refused',
      passed: isRefused(() => answer(node('carol'), replays, call(alice, 'bob').hello), 403),
    },
    {
      name: 'a call under another name is refused',
      passed: isRefused(() => answer(bob, replays, { ...call(alice, 'bob').hello, from: 'mallory' }), 403),
    },
    {
      name: 'another version is told so',
      passed: isRefused(() => answer(bob, replays, { ...call(alice, 'bob').hello, version: 2 }), 1),
    },
    {
      name: 'a proof of another call is refused',
      passed: isRefused(() => answer(bob, replays, call(alice, 'bob').hello).accept(done.proof), 403),
    },
    { name: 'a short secret is refused', passed: isRefused(() => call(node('alice', 'short'), 'bob'), 403) },
    ...frames(ours, theirs),
    ...encryption(alice, bob),
  ]
  const old = call(alice, 'bob').hello
  clock += 300_001
  cases.push({
    name: 'a call from too long ago is refused',
    passed: isRefused(() => answer(bob, new Replays(), old), 403),
  })
  const reader = new FrameReader()
  cases.push({
    name: 'a long frame before the handshake is refused at its length',
    passed: isRefused(() => reader.push(frame(Buffer.alloc(OPEN_BYTES + 1)).subarray(0, 4)), 400),
  })
  return {
    cases,
    evidence: `listener: ${listens ? 'on' : 'off'}; frames are encrypted unless allow_unencrypted is set`,
  }
}

function encryption(alice: Side, bob: Side): readonly ProbeCase[] {
  const [one, other] = [alice, bob].map((side): Side => ({ ...side, encryption: 'required' }))
  if (!one || !other) return []
  const calling = call(one, 'bob')
  const { ephemeral: _, ...stripped } = calling.hello
  const done = calling.accept(answer(other, new Replays(), calling.hello).challenge)
  return [
    {
      name: 'an encrypted frame cannot be read on the way',
      passed: done.link.encrypted && !done.link.out.seal(Buffer.from('in plain words')).includes('in plain words'),
    },
    {
      name: 'a call without its offer to encrypt is refused',
      passed: isRefused(() => answer({ ...other, encryption: 'offered' }, new Replays(), stripped), 403),
    },
    {
      name: 'a caller that does not encrypt is refused',
      passed: isRefused(() => answer(other, new Replays(), call(alice, 'bob').hello), 403),
    },
  ]
}

function pass(from: Link, to: Link, text: string): string {
  const [content] = new FrameReader().push(from.out.seal(Buffer.from(text)))
  return content ? to.in.open(content).toString() : ''
}

function frames(ours: Link, theirs: Link): readonly ProbeCase[] {
  const content = (): Buffer => ours.out.seal(Buffer.from('{"amount":1}')).subarray(4)
  const sound = content()
  const changed = Buffer.from(sound)
  changed[10] = (changed[10] ?? 0) ^ 1
  const refused = isRefused(() => theirs.in.open(changed), 403)
  const taken = theirs.in.open(sound).toString() === '{"amount":1}'
  return [
    { name: 'a changed frame is refused', passed: refused && taken },
    { name: 'a repeated frame is refused', passed: isRefused(() => theirs.in.open(sound), 403) },
    { name: 'a frame sent back is refused', passed: isRefused(() => ours.in.open(content()), 403) },
  ]
}

function wrongCallee(alice: Side, bob: Side): boolean {
  const calling = call(alice, 'bob')
  const { challenge } = (() => {
    // It answers without being able to check the call.
    const own = call({ ...bob, self: 'alice' }, 'bob')
    return answer(bob, new Replays(), own.hello)
  })()
  return isRefused(() => calling.accept(challenge), 403)
}

function reflected(alice: Side): boolean {
  const calling = call(alice, 'bob')
  return isRefused(() => calling.accept({ ...calling.hello, type: 'challenge', from: 'bob', to: 'alice' }), 403)
}

function isRefused(work: () => unknown, code: LinkRefusal['code']): boolean {
  try {
    work()
    return false
  } catch (error) {
    return error instanceof LinkRefusal && error.code === code
  }
}
