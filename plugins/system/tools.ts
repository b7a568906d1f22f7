import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { SystemServices } from './health-routes.ts'
import { machine } from './machine.ts'

/** What an agent may know of where it runs: nothing that names the machine, its user or its folders. */
export function systemTools({ daemon, agents, inference }: SystemServices): readonly AnyTool[] {
  const info = defineTool({
    name: 'system_info',
    risk: 'read',
    description:
      'What you run on: version of this service, since when, how many agents it has, its default model, ' +
      'platform, processors and memory of the machine. Answers JSON.',
    input: v.object({}),
    async run() {
      const { availableParallelism, freemem, totalmem } = await import('node:os')
      const chosen = await inference()?.defaultModel()
      return JSON.stringify({
        service: 'svc',
        version: daemon.build.version,
        started_at: daemon.startedAt,
        uptime_seconds: Math.floor(daemon.health().uptimeSecs),
        agent_count: (await agents()?.list())?.length ?? 0,
        default_model: chosen ? { provider: chosen.provider, model: chosen.model } : null,
        ...machine(),
        processors: availableParallelism(),
        memory_bytes: totalmem(),
        free_memory_bytes: freemem(),
      })
    },
  })
  return [info]
}
