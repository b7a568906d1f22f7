import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson, renderFacts } from 'svc/cli'
import { requireSchedule, scheduleArgs, shortTime, stateOf, whenOf } from './schedule.ts'

export default defineCommand({
  description: 'Show a schedule.',
  args: scheduleArgs,
  examples: [['svc schedule show news', 'by its name']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) => requireSchedule(client, args.schedule))
    if (args.json) printJson(found)
    else
      print(
        renderFacts([
          ['name', escapeControls(found.name)],
          ['id', found.id],
          ['agent', found.agent_id],
          ['when', whenOf(found)],
          ['prompt', escapeControls(found.prompt)],
          ['state', found.enabled ? stateOf(found) : `disabled: ${escapeControls(found.reason ?? 'by hand')}`],
          ['next', shortTime(found.next_run) || 'never'],
          ['last', shortTime(found.last_run) || 'never'],
          ['missed', found.missed],
          ['delivery', found.delivery_targets.map(({ kind }) => kind).join(', ') || 'none'],
        ]),
      )
    return exits.ok
  },
})
