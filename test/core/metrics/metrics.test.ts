import { expect, test } from 'vitest'
import { MetricRegistry } from '../../../core/metrics/registry.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { open, ping } from '../http/harness.ts'

test('every kind is written with its help and type', () => {
  const registry = new MetricRegistry()
  const metrics = registry.forPlugin(new Scope('x'))
  const counter = metrics.counter('svc_turns_total', 'Turns.')
  metrics.gauge('svc_agents', 'Agents\nnow \\ here.').set(3)
  metrics.observed('svc_uptime_seconds', 'Uptime.', () => [{ value: 1.5, labels: { kind: 'a"b\\c\nd' } }])
  const histogram = metrics.histogram('svc_wait_seconds', 'Waiting.', [0.1, 1])
  counter.add()
  counter.add(2, { agent: 'x' })
  for (const value of [0.05, 0.1, 0.5, 5]) histogram.observe(value)
  expect(registry.render()).toBe(`# HELP svc_agents Agents\\nnow \\\\ here.
# TYPE svc_agents gauge
svc_agents 3
# HELP svc_turns_total Turns.
# TYPE svc_turns_total counter
svc_turns_total 1
svc_turns_total{agent="x"} 2
# HELP svc_uptime_seconds Uptime.
# TYPE svc_uptime_seconds gauge
svc_uptime_seconds{kind="a\\"b\\\\c\\nd"} 1.5
# HELP svc_wait_seconds Waiting.
# TYPE svc_wait_seconds histogram
svc_wait_seconds_bucket{le="0.1"} 2
svc_wait_seconds_bucket{le="1"} 3
svc_wait_seconds_bucket{le="+Inf"} 4
svc_wait_seconds_sum 5.65
svc_wait_seconds_count 4
`)
})

test('metrics of a plugin go with its scope, and their names are free again', async () => {
  const registry = new MetricRegistry()
  const scope = new Scope('x')
  registry.forPlugin(scope).gauge('svc_a', 'A.')
  expect(() => registry.forPlugin(new Scope('y')).gauge('svc_a', 'A.')).toThrow('exists already')
  await scope.close(10)
  expect(registry.render()).not.toContain('svc_a')
  expect(() => registry.forPlugin(new Scope('y')).gauge('svc_a', 'A.')).not.toThrow()
})

test('a gauge that cannot be read hides no other', () => {
  const registry = new MetricRegistry()
  const metrics = registry.forPlugin(new Scope('x'))
  metrics.observed('svc_a', 'A.', () => {
    throw new Error('gone')
  })
  metrics.gauge('svc_b', 'B.').set(1)
  expect(registry.render()).toContain('svc_b 1')
})

test('a counter cannot go down, and labels are checked', () => {
  const counter = new MetricRegistry().forPlugin(new Scope('x')).counter('svc_a_total', 'A.')
  expect(() => counter.add(-1)).toThrow('cannot go down')
  expect(() => counter.add(1, { 'a-b': 'x' })).toThrow('not a label name')
})

test('requests are counted by method and status', async () => {
  const { url, metrics } = await open([ping])
  await (await fetch(`${url}/api/ping`)).text()
  await (await fetch(`${url}/none`, { method: 'PUT' })).text()
  await expect.poll(() => metrics.render()).toContain('svc_http_request_duration_seconds_count 2')
  expect(metrics.render()).toContain(
    'svc_http_requests_total{method="GET",status="200"} 1\nsvc_http_requests_total{method="PUT",status="404"} 1\n',
  )
})

test('labels that somebody else chooses fill no memory', () => {
  const registry = new MetricRegistry()
  const metrics = registry.forPlugin(new Scope('x'))
  const counter = metrics.counter('svc_a_total', 'A.')
  const gauge = metrics.gauge('svc_b', 'B.')
  const histogram = metrics.histogram('svc_c', 'C.', [1])
  for (let at = 0; at < 2100; at++) {
    const labels = { user: String(at) }
    counter.add(1, labels)
    gauge.set(at, labels)
    histogram.observe(at, labels)
  }
  counter.add(1, { user: '0' })
  const lines = registry.render().split('\n')
  expect(lines).toContain('svc_a_total{user="0"} 2')
  expect(lines).toContain('svc_a_total{otel_metric_overflow="true"} 100')
  expect(lines).toContain('svc_b{otel_metric_overflow="true"} 2099')
  expect(lines).toContain('svc_c_count{otel_metric_overflow="true"} 100')
  expect(lines.filter((line) => line.startsWith('svc_a_total{'))).toHaveLength(2001)
})
