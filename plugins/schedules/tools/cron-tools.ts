import * as v from 'valibot'
import { omitUndefined, defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import { JobFields } from '../body.ts'
import type { LazyRuntime } from '../routes.ts'

const code = 'cron_job_not_found'
const jobId = v.pipe(v.string(), v.uuid('Expected the id of a cron job'), v.toLowerCase())
const { action, delivery, name, one_shot: oneShot, schedule, tz } = JobFields.entries

export function cronTools(runtime: LazyRuntime): readonly AnyTool[] {
  return [createTool(runtime), listTool(runtime), cancelTool(runtime), enableTool(runtime)]
}

function createTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    refuses: ['Secret'],
    name: 'cron_create',
    risk: 'write',
    effect: 'lasting',
    description:
      'Make a cron job for yourself. `schedule` is a cron expression, {"kind": "every", "every_secs"} or ' +
      '{"kind": "at", "at"}; `action` is {"kind": "agent_turn", "message"}. Answers JSON.',
    input: v.strictObject({
      name: v.nonOptional(name),
      schedule: v.nonOptional(schedule),
      action: v.nonOptional(
        v.union([v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(16_384)), v.nonOptional(action)]),
      ),
      delivery,
      one_shot: oneShot,
      tz,
    }),
    async run({ action: given, ...input }, call) {
      const [opened, { toCronJob }, own] = await Promise.all([
        runtime(),
        import('../views.ts'),
        import('./own-jobs.ts'),
      ])
      const does = typeof given === 'string' ? { prompt: given } : { action: given }
      const body = { ...omitUndefined(input), ...does, agent_id: call.agentId }
      const author = own.authorOf(call, call.agentId)
      return JSON.stringify(toCronJob(await opened.schedules.create(body, undefined, author)))
    },
  })
}

function listTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    labels: ['UntrustedAgent', 'ExternalNetwork'],
    name: 'cron_list',
    risk: 'read',
    description: 'The cron jobs that are for you or that you made. Answers JSON.',
    input: v.object({}),
    async run(_, { agentId }) {
      const [{ toCronJob }, { jobsOf }] = await Promise.all([import('../views.ts'), import('./own-jobs.ts')])
      return JSON.stringify({ jobs: (await jobsOf(await runtime(), agentId)).map(toCronJob) })
    },
  })
}

function cancelTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'cron_cancel',
    risk: 'write',
    effect: 'lasting',
    description: 'Remove a cron job that you made.',
    input: v.object({ job_id: jobId }),
    async run(input, { agentId }) {
      const [opened, { requireOwn }] = await Promise.all([runtime(), import('./own-jobs.ts')])
      await requireOwn(opened, code, input.job_id, agentId)
      await opened.schedules.remove(code, input.job_id)
      return 'Removed.'
    },
  })
}

function enableTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'cron_enable',
    risk: 'write',
    effect: 'lasting',
    description: 'Start a cron job again that you made and that was disabled because it failed. Answers JSON.',
    input: v.object({ job_id: jobId }),
    async run(input, { agentId }) {
      const [{ toCronJob }, { resume }] = await Promise.all([import('../views.ts'), import('./own-jobs.ts')])
      return JSON.stringify(toCronJob(await resume(await runtime(), code, input.job_id, agentId)))
    },
  })
}
