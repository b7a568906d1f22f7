import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { LazyRuntime } from '../routes.ts'

const code = 'schedule_not_found'
/** Security facts 1.2: what is written here is a prompt later, and another agent may have written what is read. */
const written = { refuses: ['Secret'] } as const
const read = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const id = v.pipe(v.string(), v.uuid('Expected the id of a schedule'), v.toLowerCase())

export function scheduleTools(runtime: LazyRuntime, agents: Agents): readonly AnyTool[] {
  return [createTool(runtime, agents), listTool(runtime), deleteTool(runtime), resumeTool(runtime)]
}

function createTool(runtime: LazyRuntime, agents: Agents): AnyTool {
  return defineTool({
    ...written,
    name: 'schedule_create',
    risk: 'write',
    effect: 'lasting',
    description:
      'Have yourself asked something at certain times. `schedule` is a cron expression of five fields, or a phrase ' +
      'such as "every 10 minutes", "daily at 9" or "weekdays at 18:30". Answers JSON with the id and the next time.',
    input: v.strictObject({
      description: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(16_384), v.description('What to do then.')),
      schedule: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(256)),
      agent: v.optional(v.pipe(v.string(), v.maxLength(256), v.description('Another agent by name, if you may.'))),
      tz: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('Such as Europe/Berlin; UTC when absent.'))),
    }),
    async run(input, call) {
      const [opened, { readPhrase }, own] = await Promise.all([
        runtime(),
        import('../timing/phrase.ts'),
        import('./own-jobs.ts'),
      ])
      const target = await own.targetOf(agents, call.agentId, input.agent)
      const body = { agent_id: target, prompt: input.description, schedule: readPhrase(input.schedule), tz: input.tz }
      const author = own.authorOf(call, target)
      return JSON.stringify(own.brief(await opened.schedules.create(body, undefined, author)))
    },
  })
}

function listTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...read,
    name: 'schedule_list',
    risk: 'read',
    description: 'The schedules that are for you or that you made, with next times and last results. Answers JSON.',
    input: v.object({}),
    async run(_, { agentId }) {
      const { brief, jobsOf } = await import('./own-jobs.ts')
      return JSON.stringify({ schedules: (await jobsOf(await runtime(), agentId)).map(brief) })
    },
  })
}

function deleteTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'schedule_delete',
    risk: 'write',
    effect: 'lasting',
    description: 'Remove a schedule that you made.',
    input: v.object({ id }),
    async run(input, { agentId }) {
      const [opened, { requireOwn }] = await Promise.all([runtime(), import('./own-jobs.ts')])
      await requireOwn(opened, code, input.id, agentId)
      await opened.schedules.remove(code, input.id)
      return 'Removed.'
    },
  })
}

function resumeTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'schedule_resume',
    risk: 'write',
    effect: 'lasting',
    description: 'Start a schedule again that you made and that was disabled because it failed. Answers JSON.',
    input: v.object({ id }),
    async run(input, { agentId }) {
      const { brief, resume } = await import('./own-jobs.ts')
      return JSON.stringify(brief(await resume(await runtime(), code, input.id, agentId)))
    },
  })
}
