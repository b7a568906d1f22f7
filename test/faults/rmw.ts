import { call, prepareHome } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * What was acknowledged is read by the next request, by its id and in the list; what was deleted is gone for the next
 * request.
 */
export async function rmw({ built, rounds }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  await using daemon = await home.start()
  const problems: string[] = []
  const queue = Array.from({ length: rounds }, (_, index) => index)
  const one = async (index: number): Promise<void> => {
    const spawned = await call(
      daemon,
      'POST',
      '/api/agents',
      { manifest_toml: `name = "rmw-${index}"\n[model]\nprovider = "builtin"\nmodel = "offline"\n` },
      60_000,
    )
    if (spawned.status !== 201) {
      problems.push(`spawn ${index} answered ${spawned.status}`)
      return
    }
    const id: string = spawned.body.agent_id
    const [read, list] = await Promise.all([
      call(daemon, 'GET', `/api/agents/${id}`, undefined, 60_000),
      call(daemon, 'GET', '/api/agents', undefined, 60_000),
    ])
    if (read.status !== 200) problems.push(`agent ${index} was not there: ${read.status}`)
    if (!list.body.some((agent: { id: string }) => agent.id === id)) problems.push(`agent ${index} was not in the list`)
    const removed = await call(daemon, 'DELETE', `/api/agents/${id}`, undefined, 60_000)
    if (removed.status !== 200) problems.push(`delete ${index} answered ${removed.status}`)
    const gone = await call(daemon, 'GET', `/api/agents/${id}`, undefined, 60_000)
    if (gone.status !== 404) problems.push(`agent ${index} was still there: ${gone.status}`)
  }
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) await one(next)
    }),
  )
  await daemon.stop()
  return { agents: rounds, problems: problems.slice(0, 5) }
}
