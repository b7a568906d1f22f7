import { expect, it } from 'vitest'
import { webhooks } from './webhooks.ts'

it('every event reaches its receiver under one id, in order, although the daemon is killed and the receiver fails', async () => {
  const report = await webhooks({ events: 24, kills: 2, seed: 7 })
  expect(report.problems).toEqual([])
  expect(report.events).toBeGreaterThan(15)
  expect(report.received).toBeGreaterThanOrEqual(report.events)
})
