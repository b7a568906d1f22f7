import type { Result } from '../figures.ts'
import { Home, median, startSvc } from '../processes.ts'
import { inParallel, request, spawnAgents } from './recorder.ts'

const ROUNDS = 5
const STEPS = 20
/** Runs at once, and people at once who write to as many agents. */
const WIDTH = 8
const RUNS = 40
const GOAL = 0.5
const config = `
[plugins.queue.concurrency]
workflow = ${WIDTH}
`

/**
 * Steps of workflows against the built-in model. The baseline sends as many messages to the same model without a
 * workflow: a step does the same, and is recorded before and after.
 */
export async function workflows(): Promise<readonly Result[]> {
  using home = new Home(config)
  await using svc = await startSvc(home)
  const { port } = svc
  const agents = await spawnAgents(port, WIDTH)
  const ids = await Promise.all(
    agents.map(async (agentId, index) => {
      const steps = Array.from({ length: STEPS }, (_, at) => ({
        name: `step ${at}`,
        agent_id: agentId,
        prompt: 'echo {{run_input}}',
      }))
      const body = { name: `bench-${index}`, steps }
      return (await request<{ workflow_id: string }>(port, 'POST', '/api/workflows', body)).workflow_id
    }),
  )
  const runAll = () =>
    inParallel(RUNS, WIDTH, (index) =>
      request<object>(port, 'POST', `/api/workflows/${ids[index % WIDTH]}/run`, { input: 'hello there' }),
    )
  const sendAll = () =>
    inParallel(RUNS * STEPS, WIDTH, (index) =>
      request<object>(port, 'POST', `/api/agents/${agents[index % WIDTH]}/message`, { message: 'echo hello there' }),
    )
  const rate = async (work: () => Promise<void>): Promise<number> => {
    const begun = performance.now()
    await work()
    return (RUNS * STEPS * 1000) / (performance.now() - begun)
  }
  await Promise.all([runAll(), sendAll()])
  const [steps, turns]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    turns.push(await rate(sendAll))
    steps.push(await rate(runAll))
  }
  const [svcRate, floor] = [median(steps), median(turns)]
  const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`
  return [
    {
      label: `steps of workflows, ${WIDTH} runs at once, against turns of the same model`,
      value: perSecond(svcRate),
      floor: perSecond(floor),
      ratio: (svcRate / floor).toFixed(2),
      goal: `>= ${GOAL}`,
      reached: svcRate / floor >= GOAL,
    },
  ]
}
