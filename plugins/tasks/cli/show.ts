import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson, renderFacts } from 'svc/cli'
import { agentNames, requireTask, taskArgs } from './task.ts'

export default defineCommand({
  description: 'Show a task with its result.',
  args: taskArgs,
  examples: [["svc task show 69dc75feab68 --json | jq -r '.result'", 'the result for a script']],
  async run(args) {
    const { task, nameOf } = await callDaemon(await connect(args), async (client) => ({
      task: await requireTask(client, args.task),
      nameOf: await agentNames(client),
    }))
    if (args.json) printJson(task)
    else
      print(
        renderFacts([
          ['title', escapeControls(task.title)],
          ['id', task.id],
          ['description', escapeControls(task.description)],
          ['status', task.status],
          ['for', escapeControls(nameOf(task.assigned_to)) || 'any agent'],
          ['posted by', `${escapeControls(nameOf(task.created_by))} at ${task.created_at}`],
          ['claimed by', escapeControls(nameOf(task.claimed_by)) || 'nobody'],
          ['attempts', String(task.attempts)],
          ['ended', task.completed_at ?? 'not yet'],
          ['turn', task.turn_id ?? 'none'],
          ['result', escapeControls(task.result ?? '')],
        ]),
      )
    return exits.ok
  },
})
