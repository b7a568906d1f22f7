import { expect, it } from 'vitest'
import { latencyOf } from '../../../plugins/activity/latency.ts'
import { levelOf, outcomeOf } from '../../../plugins/activity/level.ts'

it('percentiles are times that were measured', () => {
  expect(latencyOf(Array.from({ length: 100 }, (_, index) => 100 - index))).toEqual({
    count: 100,
    avg: 50.5,
    p50: 50,
    p90: 90,
    p95: 95,
    p99: 99,
    max: 100,
  })
  expect(latencyOf([7])).toEqual({ count: 1, avg: 7, p50: 7, p90: 7, p95: 7, p99: 7, max: 7 })
})

it('nothing measured is null, not zero', () => {
  expect(latencyOf([])).toEqual({ count: 0, avg: null, p50: null, p90: null, p95: null, p99: null, max: null })
})

it.each([
  ['agent_message', 'turn failed: overloaded', 'error', 'error'],
  ['capability_check', 'denied: memory_read of "x"', 'error', 'denied'],
  ['agent_killed', 'agent "a" killed', 'warn', 'ok'],
  ['turn_interrupted', 'stopped', 'warn', 'ok'],
  ['agent_spawned', 'agent "a" spawned', 'info', 'ok'],
])('%s: %s is of level %s', (event, details, level, outcome) => {
  expect([levelOf(event, details), outcomeOf(event, details)]).toEqual([level, outcome])
})
