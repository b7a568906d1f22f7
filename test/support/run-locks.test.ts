import { expect, it } from 'vitest'
import { runLock } from './run-locks.ts'

it('one at a time holds a lock of the run', async () => {
  const name = crypto.randomUUID()
  const order: string[] = []
  const work = async (who: string): Promise<void> => {
    using _lock = await runLock(name)
    order.push(`${who} begins`)
    // Another lock waits for nobody.
    using _other = await runLock(`${name} ${who}`)
    order.push(`${who} ends`)
  }
  await Promise.all(['a', 'b', 'c'].map(work))
  expect(order.filter((each) => each.endsWith('begins'))).toHaveLength(3)
  for (let at = 0; at < order.length; at += 2) expect(order[at]?.slice(0, 1)).toBe(order[at + 1]?.slice(0, 1))
})
