import type { Result } from './figures.ts'
import { Home, median, startSvc } from './processes.ts'

const REQUESTS = 300
const LIMIT_MS = 2

/**
 * How long a list of models takes to arrive, one request after the other, against the health check on the same
 * connection.
 */
export async function models(): Promise<readonly Result[]> {
  using home = new Home()
  await using svc = await startSvc(home)
  const time = async (
    path: string,
  ): Promise<{ readonly ms: number; readonly first: number; readonly rows: number }> => {
    const times: number[] = []
    let rows = 0
    for (let request = 0; request < REQUESTS; request++) {
      const started = performance.now()
      const response = await fetch(`http://127.0.0.1:${svc.port}${path}`)
      const bytes = await response.arrayBuffer()
      times.push(performance.now() - started)
      if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
      if (request === 0 && path !== '/api/health')
        rows = (JSON.parse(new TextDecoder().decode(bytes)) as { total: number }).total
    }
    return { ms: median(times), first: times[0] ?? 0, rows }
  }
  const show = (value: number): string => `${value.toFixed(2)} ms`
  const floor = await time('/api/health')
  const results: Result[] = []
  for (const path of ['/api/models?provider=openrouter', '/api/models']) {
    const { ms, first, rows } = await time(path)
    const counted = (ms * 200) / rows
    results.push({
      label: `listing ${rows} models (the first time ${show(first)}; 200 of them ${show(counted)})`,
      value: show(ms),
      floor: show(floor.ms),
      ratio: `${(ms / floor.ms).toFixed(1)} x`,
      goal: `<= ${LIMIT_MS} ms for 200`,
      reached: (rows < 300 ? ms : counted) <= LIMIT_MS,
    })
  }
  return results
}
