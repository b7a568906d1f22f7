import * as v from 'valibot'
import { clientArgs, commandLine, defineCommand, callDaemon, connect, exits, Failure, print, printJson } from 'svc/cli'
import type { Command, DaemonClient } from 'svc/cli'
import { listAgents } from '../../agents/cli/client.ts'

export const Task = v.looseObject({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  status: v.string(),
  assigned_to: v.nullable(v.string()),
  created_by: v.string(),
  claimed_by: v.nullable(v.string()),
  attempts: v.number(),
  created_at: v.string(),
  completed_at: v.nullable(v.string()),
  result: v.nullable(v.string()),
  turn_id: v.nullable(v.string()),
})
export type Task = v.InferOutput<typeof Task>
const List = v.looseObject({ tasks: v.array(Task), total: v.number() })
const Changed = v.looseObject({ status: v.string(), id: v.string() })
const MAX_FOUND = 1000

export const listTasks = (client: DaemonClient, query: URLSearchParams): Promise<v.InferOutput<typeof List>> =>
  client.call('GET', `/api/tasks?${query}`, List)

/** A task by its id, its title, or the beginning or end of its id. Throws a `Failure`. */
export async function requireTask(client: DaemonClient, text: string): Promise<Task> {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return client.call('GET', `/api/tasks/${text}`, Task)
  const { tasks } = await listTasks(client, new URLSearchParams({ limit: String(MAX_FOUND) }))
  const part = text.toLowerCase()
  const titled = tasks.filter(({ title }) => title === text)
  const found =
    titled.length > 0 ? titled : tasks.filter(({ id }) => part !== '' && (id.startsWith(part) || id.endsWith(part)))
  if (found[0] && found.length === 1) return client.call('GET', `/api/tasks/${found[0].id}`, Task)
  throw new Failure(
    found.length > 1 ? exits.usage : exits.notFound,
    found.length > 1 ? `"${text}" is ${found.length} tasks` : `there is no task "${text}"`,
    found.length > 1 ? 'give more of the id' : `${commandLine('task list')} shows those there are`,
  )
}
/** Names of agents by their ids. */
export async function agentNames(client: DaemonClient): Promise<(id: string | null) => string> {
  const names = new Map((await listAgents(client)).map(({ id, name }) => [id, name]))
  return (id) => (id === null ? '' : (names.get(id) ?? id))
}

export const taskArgs = {
  task: {
    type: 'positional',
    required: true,
    description: 'Title or id of the task, or the beginning or end of its id',
  },
  ...clientArgs,
} as const

/** The command that cancels or retries a task. */
export function changeCommand(action: 'cancel' | 'retry', description: string, done: string): Command {
  return defineCommand({
    description,
    args: taskArgs,
    examples: [[`svc task ${action} 69dc75feab68`, 'by the end of its id']],
    async run(args) {
      const answer = await callDaemon(await connect(args), async (client) => {
        const { id } = await requireTask(client, args.task)
        return client.call('POST', `/api/tasks/${id}/${action}`, Changed)
      })
      if (args.json) printJson(answer)
      else print(done)
      return exits.ok
    },
  })
}
