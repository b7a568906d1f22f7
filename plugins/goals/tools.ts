import * as v from 'valibot'
import { defineTool, omitUndefined } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { OwnGoals } from './own-goals.ts'
import { description, dueAt, progress, status, title } from './schema.ts'

/** The goals of the agent that calls. */
export type GoalsOf = (agentId: string) => Promise<OwnGoals>

/** Security facts 1.2: another agent, or what it read, may have written the text of a goal. */
const written = { refuses: ['Secret'] } as const
const read = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const id = v.pipe(v.string(), v.uuid('Expected the id of a goal'), v.toLowerCase())

export function goalTools(goalsOf: GoalsOf): readonly AnyTool[] {
  const create = defineTool({
    ...written,
    name: 'goal_create',
    risk: 'write',
    description: 'Make a goal, for yourself unless you name another agent. Answers JSON with its id.',
    input: v.strictObject({
      title,
      description: v.optional(description, ''),
      agent: v.optional(v.pipe(v.string(), v.maxLength(256), v.description('Another agent by name, if you may.'))),
      parent_id: v.optional(v.pipe(id, v.description('A goal of yours that it is a part of.'))),
      due_at: v.optional(dueAt),
    }),
    run: async (input, { agentId }) => JSON.stringify(await (await goalsOf(agentId)).create(input)),
  })
  const list = defineTool({
    ...read,
    name: 'goal_list',
    risk: 'read',
    description: 'Your goals, those that you made for others, and those that are for nobody. Answers JSON.',
    input: v.object({ status: v.optional(status) }),
    run: async (input, { agentId }) => JSON.stringify({ goals: await (await goalsOf(agentId)).list(input.status) }),
  })
  const update = defineTool({
    name: 'goal_update',
    risk: 'write',
    description: 'Say how far a goal is: its status, its progress in percent, or both. Answers JSON.',
    input: v.object({ goal_id: id, status: v.optional(status), progress: v.optional(progress) }),
    run: async ({ goal_id: goalId, ...input }, { agentId }) =>
      JSON.stringify(await (await goalsOf(agentId)).update(goalId, omitUndefined(input))),
  })
  return [create, list, update]
}
