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
import { firesOf, patternOf, requireTrigger, triggerArgs } from './trigger.ts'

export default defineCommand({
  description: 'Show a trigger.',
  args: triggerArgs,
  examples: [['svc trigger show 0192f0c1', 'by the beginning of its id']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) => requireTrigger(client, args.trigger))
    if (args.json) printJson(found)
    else
      print(
        renderFacts([
          ['id', found.id],
          ['agent', found.agent_id],
          ['event', escapeControls(patternOf(found))],
          ['prompt', escapeControls(found.prompt_template)],
          ['workflow', found.workflow_id ?? 'none'],
          ['state', found.enabled ? 'enabled' : `disabled: ${escapeControls(found.reason ?? 'by hand')}`],
          ['fired', firesOf(found)],
          ['last', renderTime(found.last_fired, 'second') || 'never'],
          ['cool-down', found.cooldown_secs === null ? 'as configured' : `${found.cooldown_secs} s`],
          ['delivery', found.delivery_targets.map(({ kind }) => kind).join(', ') || 'none'],
        ]),
      )
    return exits.ok
  },
})
