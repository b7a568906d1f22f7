import * as v from 'valibot'
import { clientArgs, commandLine, escapeControls, exits, Failure, renderTime } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const PAGE = 1_000

const orNull = v.nullable(v.string())
export const Goal = v.looseObject({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  status: v.string(),
  progress: v.number(),
  agent_id: orNull,
  parent_id: orNull,
  due_at: orNull,
})
export type Goal = v.InferOutput<typeof Goal>
const Page = v.looseObject({ items: v.array(Goal), total: v.number() })

/** All of them; `query` filters, such as `status=pending`. */
export async function listGoals(client: DaemonClient, query = ''): Promise<readonly Goal[]> {
  const goals: Goal[] = []
  for (;;) {
    const page = await client.call('GET', `/api/goals?limit=${PAGE}&offset=${goals.length}&${query}`, Page)
    goals.push(...page.items)
    if (page.items.length === 0 || goals.length >= page.total) return goals
  }
}

/** A goal by its title, its id or the beginning of it. Throws a `Failure`. */
export async function requireGoal(client: DaemonClient, text: string): Promise<Goal> {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return client.call('GET', `/api/goals/${text}`, Goal)
  const goals = await listGoals(client)
  const titled = goals.filter(({ title }) => title === text)
  const found = titled.length > 0 ? titled : goals.filter(({ id }) => text !== '' && id.startsWith(text.toLowerCase()))
  if (found[0] && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${text}" is ${found.length} goals`,
      `give an id: ${found.map(({ id }) => id).join(', ')}`,
    )
  throw new Failure(exits.notFound, `there is no goal "${text}"`, `${commandLine('goal list')} shows those there are`)
}

/** Each goal below its parent, with how deep it is; one whose parent is not listed is at the top. */
export function asTree(goals: readonly Goal[]): readonly { readonly goal: Goal; readonly depth: number }[] {
  const known = new Set(goals.map(({ id }) => id))
  const below = Map.groupBy(goals, ({ parent_id: parent }) => (parent !== null && known.has(parent) ? parent : ''))
  const rows: { goal: Goal; depth: number }[] = []
  const add = (parent: string, depth: number): void => {
    for (const goal of below.get(parent) ?? []) {
      rows.push({ goal, depth })
      add(goal.id, depth + 1)
    }
  }
  add('', 0)
  return rows
}

export const titleOf = ({ title }: Goal): string => escapeControls(title)
export const dueOf = ({ due_at: due }: Goal): string => renderTime(due)

export const goalArgs = {
  goal: { type: 'positional', required: true, description: 'Title or id of the goal, or the beginning of its id' },
  ...clientArgs,
} as const

/** What `add` and `update` have in common. */
export const fieldArgs = {
  description: { type: 'string', description: 'What it is about', valueHint: 'text' },
  agent: { type: 'string', description: 'Name or id of the agent', valueHint: 'name' },
  parent: { type: 'string', description: 'Goal that it is a part of', valueHint: 'goal' },
  due: { type: 'string', description: 'When it is due', valueHint: '2026-12-31T18:00:00Z' },
  status: { type: 'string', description: 'pending, in_progress, completed or cancelled', valueHint: 'status' },
  progress: { type: 'string', description: 'Percent', valueHint: '0-100' },
} as const
export interface FieldArgs {
  readonly description?: string | undefined
  readonly agent?: string | undefined
  readonly parent?: string | undefined
  readonly due?: string | undefined
  readonly status?: string | undefined
  readonly progress?: string | undefined
}

/** The body of a request; `none` removes the agent, the parent or the due date. */
export async function toBody(client: DaemonClient, args: FieldArgs): Promise<Readonly<Record<string, unknown>>> {
  const { description, agent, parent, due, status, progress } = args
  const orRemoved = (text: string): string | null => (text === 'none' ? null : text)
  return {
    ...(description === undefined ? {} : { description }),
    ...(agent === undefined ? {} : { agent_id: orRemoved(agent) }),
    ...(parent === undefined ? {} : { parent_id: parent === 'none' ? null : (await requireGoal(client, parent)).id }),
    ...(due === undefined ? {} : { due_at: orRemoved(due) }),
    ...(status === undefined ? {} : { status }),
    ...(progress === undefined ? {} : { progress: Number(progress) }),
  }
}
