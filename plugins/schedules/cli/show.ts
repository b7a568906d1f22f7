import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
  renderTime,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { requireSchedule, scheduleArgs, stateOf, targetsOf, whenOf } from './schedule.ts'

export default defineCommand({
  description: 'Show a schedule.',
  args: scheduleArgs,
  examples: [['svc schedule show news', 'by its name']],
  async run(args) {
    const { found, agent } = await callDaemon(await connect(args), async (client) => {
      const schedule = await requireSchedule(client, args.schedule)
      const { name } = await requireAgent(client, schedule.agent_id)
      return { found: schedule, agent: escapeControls(name) }
    })
    if (args.json) printJson(found)
    else
      print(
        renderFacts([
          ['name', escapeControls(found.name)],
          ['id', found.id],
          ['agent', agent],
          ...(found.workflow_id === null ? [] : [['workflow', found.workflow_id] as const]),
          ['when', whenOf(found)],
          ['prompt', escapeControls(found.prompt)],
          ['state', found.enabled ? stateOf(found) : `disabled: ${escapeControls(found.reason ?? 'by hand')}`],
          ['next', renderTime(found.next_run) || 'never'],
          ['last', renderTime(found.last_run) || 'never'],
          ['missed', found.missed],
          ['delivery', escapeControls(targetsOf(found)) || 'none'],
        ]),
      )
    return exits.ok
  },
})
