import { expect, it } from 'vitest'
import { RepeatedWork } from '../../../core/scope/repeated-work.ts'

it('runs once more for all that asked while it ran, and never twice at a time', async () => {
  const begun: PromiseWithResolvers<void>[] = []
  const work = new RepeatedWork(() => {
    begun.push(Promise.withResolvers())
    return begun.at(-1)?.promise ?? Promise.resolve()
  })
  const ended: string[] = []
  const run = (name: string) => work.run().then(() => ended.push(name))
  const all = [run('first'), run('second')]
  await Promise.resolve()
  expect(begun.length).toBe(1)
  const later = [run('third'), run('fourth')]
  begun[0]?.resolve()
  await expect.poll(() => begun.length).toBe(2)
  expect(ended).toEqual([])
  begun[1]?.resolve()
  await Promise.all([...all, ...later])
  expect([begun.length, ended.length]).toEqual([2, 4])
})

it('fails for who asked, and works for who asks afterwards', async () => {
  let failures = 1
  let runs = 0
  const work = new RepeatedWork(async () => {
    runs++
    if (failures-- > 0) throw new Error('not now')
  })
  await expect(work.run()).rejects.toThrow('not now')
  await work.run()
  expect(runs).toBe(2)
})
