import type { Result } from './figures.ts'
import { Home, median, startSvc } from './processes.ts'

const json = { 'content-type': 'application/json' }

/** How long a plugin's own requests wait while it reloads, and whether anyone else notices. */
export async function reload(): Promise<readonly Result[]> {
  using home = new Home()
  await using svc = await startSvc(home)
  const base = `http://127.0.0.1:${svc.port}`
  const agents = (await (await fetch(`${base}/api/agents`)).json()) as { id: string }[]
  const own = `${base}/api/memory/agents/${agents[0]?.id}/kv/bench`
  await (await fetch(own, { method: 'PUT', headers: json, body: '{"value":1}' })).json()
  const state = { on: true, longestMs: 0, othersLongestMs: 0, failures: 0 }
  const poll = async (url: string, note: (ms: number) => void): Promise<void> => {
    while (state.on) {
      const begun = performance.now()
      const answer = await fetch(url)
      await answer.text()
      if (!answer.ok) state.failures++
      note(performance.now() - begun)
    }
  }
  const load = [
    ...[1, 2, 3, 4].map(() =>
      poll(own, (ms) => {
        state.longestMs = Math.max(state.longestMs, ms)
      }),
    ),
    ...[1, 2, 3, 4].map(() =>
      poll(`${base}/api/version`, (ms) => {
        state.othersLongestMs = Math.max(state.othersLongestMs, ms)
      }),
    ),
  ]
  const waits: number[] = []
  const others: number[] = []
  for (let round = 0; round < 30; round++) {
    const before = await reloads(base)
    state.longestMs = 0
    state.othersLongestMs = 0
    await (await fetch(`${base}/api/plugins/kv/reload`, { method: 'POST', headers: json })).json()
    for (let tries = 0; (await reloads(base)) === before; tries++)
      if (tries > 10_000) throw new Error('the reload never came')
    waits.push(state.longestMs)
    others.push(state.othersLongestMs)
  }
  state.on = false
  await Promise.all(load)
  const wait = median(waits)
  return [
    {
      label: `reload: longest wait for the plugin, p50 of 30 (others' longest: ${median(others).toFixed(0)} ms, failures: ${state.failures})`,
      value: `${wait.toFixed(1)} ms`,
      floor: '-',
      ratio: '-',
      goal: '<= 50 ms, 0 failures',
      reached: wait <= 50 && state.failures === 0,
    },
  ]
}

async function reloads(base: string): Promise<number> {
  const { reloads: count, error } = (await (await fetch(`${base}/api/plugins/kv`)).json()) as {
    reloads: number
    error?: string | null
  }
  if (error) throw new Error(`reload failed: ${error}`)
  return count
}
