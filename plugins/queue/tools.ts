import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { DatabaseQueue } from './service.ts'

/** Numbers only: a job may be another agent's. */
export function statusTool(queue: Pick<DatabaseQueue, 'status'>): AnyTool {
  return defineTool({
    name: 'queue_status',
    risk: 'read',
    polls: true,
    description: 'How many jobs of each lane wait, run, were done and have failed. Answers JSON.',
    input: v.object({}),
    async run() {
      const [lanes, { lanesOf, totalOf }] = await Promise.all([queue.status(), import('./status.ts')])
      return JSON.stringify({ ...totalOf(lanes), lanes: lanesOf(lanes) })
    },
  })
}
