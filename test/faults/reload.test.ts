import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { builtInFolders } from '../../core/host/folders.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

/** The long form: SVC_RELOADS=100. */
const RELOADS = Number(process.env['SVC_RELOADS'] ?? 20)
const IN_FLIGHT = 50
const STREAMS = 20
const OWN = 5

/** A stream that says a number every few milliseconds until its reader leaves. */
const ticking = pluginText('ticking', {
  setup: `ctx.routes.add(defineRoute({ method: 'GET', path: '/api/ticking', summary: 'Ticks', auth: 'public', effect: 'read', cost: 1, returns: v.object({}), streams: v.number(),
      async *handle({ signal }: any) {
        for (let tick = 0; !signal.aborted; tick++) { yield { data: String(tick) }; await new Promise((resolve) => setTimeout(resolve, 10)) }
      } } as any)); return {}`,
})

interface Load {
  readonly failures: string[]
  requests: number
  slowestMs: number
  stop(): Promise<void>
}

/** Keeps this many requests in flight until stopped. */
function steady(host: TestHost, lanes: number, paths: readonly string[]): Load {
  const stopping = new AbortController()
  const load: Load = {
    failures: [],
    requests: 0,
    slowestMs: 0,
    stop: async () => {
      stopping.abort()
      await all
    },
  }
  const one = async (lane: number): Promise<void> => {
    for (let turn = lane; !stopping.signal.aborted; turn++) {
      const path = paths[turn % paths.length] ?? '/'
      const started = performance.now()
      try {
        const response = await host.fetch(path)
        await response.arrayBuffer()
        if (response.status !== 200) load.failures.push(`${path}: ${response.status}`)
      } catch (error) {
        load.failures.push(`${path}: ${String(error)}`)
      }
      load.requests++
      load.slowestMs = Math.max(load.slowestMs, performance.now() - started)
    }
  }
  const all = Promise.all(Array.from({ length: lanes }, (_, lane) => one(lane)))
  return load
}

/** Reads streams to their end; each must count without a gap. */
function reading(host: TestHost): Load {
  const leave = new AbortController()
  const load: Load = {
    failures: [],
    requests: 0,
    slowestMs: 0,
    stop: async () => {
      leave.abort()
      await all
    },
  }
  const one = async (): Promise<void> => {
    try {
      const response = await host.fetch('/api/ticking', { signal: leave.signal })
      if (response.status !== 200 || !response.body) throw new Error(`${response.status}: ${await response.text()}`)
      let expected = 0
      let rest = ''
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (!line.startsWith('data:')) continue
          if (Number(line.slice(5)) !== expected) load.failures.push(`tick ${line.slice(5)} instead of ${expected}`)
          expected++
          load.requests++
        }
      }
      if (!leave.signal.aborted) load.failures.push('a stream ended')
    } catch (error) {
      if (!leave.signal.aborted) load.failures.push(String(error))
    }
  }
  const all = Promise.all(Array.from({ length: STREAMS }, one))
  return load
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

describe('reloading a plugin under traffic', () => {
  it(`fails no request and breaks no stream of another plugin in ${RELOADS} reloads, and its own requests wait and succeed`, async () => {
    await using folder = await temporaryFolder()
    await using host = await startHost({
      plugins: [...(await builtInFolders()), await writePlugin(join(folder.path, 'ticking'), ticking)],
      config: { plugins: { drain_ms: 5_000 } },
    })
    const { body: agents } = await host.json('GET', '/api/agents')
    const own = `/api/memory/agents/${agents[0].id}/kv`
    const others = steady(host, IN_FLIGHT, ['/api/health', '/api/version', '/api/agents', '/api/status'])
    const streams = reading(host)
    const probe = steady(host, OWN, [own])
    const loads = [others, streams, probe]
    for (let reload = 0; reload < RELOADS; reload++) {
      // Every lane and every stream has moved since the reload before.
      const marks = [others.requests + IN_FLIGHT, streams.requests + STREAMS, probe.requests + OWN]
      while (loads.some((load, at) => load.requests < (marks[at] ?? 0) && load.failures.length === 0))
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
      await host.app.host.reload('kv')
      expect(host.app.daemon.plugins().find(({ name }) => name === 'kv')).toMatchObject({
        state: 'loaded',
        error: undefined,
        reloads: reload + 1,
      })
    }
    await Promise.all([others.stop(), streams.stop(), probe.stop()])
    const away = host.log.flatMap((line) => /"kv" was away for ([\d.]+) ms/.exec(line)?.[1] ?? []).map(Number)
    console.log(
      `${RELOADS} reloads: unavailable p50 ${median(away).toFixed(1)} ms, most ${Math.max(...away).toFixed(1)} ms, slowest request: own ${probe.slowestMs.toFixed(0)} ms, others ${others.slowestMs.toFixed(0)} ms; ` +
        `${others.requests} other requests, ${streams.requests} events of ${STREAMS} streams, ${probe.requests} own requests`,
    )
    expect(others.failures).toEqual([])
    expect(streams.failures).toEqual([])
    expect(probe.failures).toEqual([])
    expect(away.length).toBe(RELOADS)
  }, 300_000)
})
