import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  omitUndefined,
  print,
  printJson,
  renderTime,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'
import { Schedule } from './schedule.ts'

export default defineCommand({
  description: 'Have an agent asked something at certain times.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    when: {
      type: 'positional',
      required: true,
      description: 'A cron expression, or a phrase such as "every 10 minutes" or "weekdays at 18:30"',
    },
    prompt: { type: 'positional', required: true, description: 'What it is asked' },
    name: { type: 'string', description: 'Name of the schedule (default: the first words)', valueHint: 'name' },
    tz: { type: 'string', description: 'Time zone (default: that of this machine)', valueHint: 'Europe/Berlin' },
    webhook: { type: 'string', description: 'Where results are sent by POST', valueHint: 'url' },
    channel: { type: 'string', description: 'Chat that results are sent to', valueHint: 'telegram:4711' },
    workflow: {
      type: 'string',
      description: 'A workflow that runs instead; the prompt is its input',
      valueHint: 'name',
    },
    missed: { type: 'string', description: 'skip or once: what becomes of missed times', valueHint: 'policy' },
    ...clientArgs,
  },
  examples: [
    ['svc schedule add assistant "weekdays at 9:30" "What is new today?"', 'in the time zone of this machine'],
    ['svc schedule add assistant "daily at 8" cats --workflow digest', 'runs a workflow with the input "cats"'],
    ['svc schedule add scout "*/15 * * * *" "Check the inbox" --channel telegram:4711', 'the result goes to a chat'],
  ],
  async run(args) {
    const made = await callDaemon(await connect(args), async (client) => {
      const agent = await requireAgent(client, args.agent)
      const [channel = '', ...to] = args.channel?.split(':') ?? []
      const targets = [
        ...(args.webhook === undefined ? [] : [{ kind: 'webhook', url: args.webhook }]),
        ...(args.channel === undefined ? [] : [{ kind: 'channel', channel, to: to.join(':') }]),
      ]
      const tz = args.tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone
      const body = {
        agent_id: agent.id,
        phrase: args.when,
        prompt: args.prompt,
        tz,
        delivery_targets: targets,
        ...omitUndefined({ name: args.name, missed: args.missed, workflow_id: args.workflow }),
      }
      return client.call('POST', '/api/schedules', Schedule, { body })
    })
    if (args.json) printJson(made)
    else print(`"${made.name}" (${made.id}) runs ${renderTime(made.next_run)} for the first time.`)
    return exits.ok
  },
})
