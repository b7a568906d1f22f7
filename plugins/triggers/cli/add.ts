import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  Failure,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'

/** The field of those patterns that have one. */
const FIELDS: Readonly<Record<string, string | undefined>> = {
  agent_spawned: 'name_pattern',
  system_keyword: 'keyword',
  memory_key_pattern: 'key_pattern',
  content_match: 'substring',
  task_posted: 'assignee_match',
  task_claimed: 'creator_match',
}

export default defineCommand({
  description: 'Have an agent asked something whenever something happens.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    pattern: {
      type: 'positional',
      required: true,
      description:
        'lifecycle, agent_spawned, agent_terminated, system, system_keyword, memory_update, memory_key_pattern, ' +
        'content_match, task_posted, task_claimed or all',
    },
    prompt: { type: 'positional', required: false, description: 'What it is asked; {{event}} is what happened' },
    match: { type: 'string', description: 'What the pattern compares with', valueHint: 'scout-*' },
    max: { type: 'string', description: 'How often it fires (default: no limit)', valueHint: 'number' },
    workflow: { type: 'string', description: 'Id of a workflow that runs instead', valueHint: 'id' },
    webhook: { type: 'string', description: 'Where results are sent by POST', valueHint: 'url' },
    channel: { type: 'string', description: 'Chat that results are sent to', valueHint: 'telegram:4711' },
    ...clientArgs,
  },
  examples: [
    ['svc trigger add assistant agent_spawned "Greet: {{event}}" --match "scout-*"', 'for agents with such a name'],
    ['svc trigger add assistant system_keyword --match started', 'with the usual prompt'],
  ],
  async run(args) {
    const field = FIELDS[args.pattern]
    if (args.match !== undefined && field === undefined)
      throw new Failure(exits.usage, `"${args.pattern}" compares with nothing`, 'leave out --match')
    const [channel = '', ...to] = args.channel?.split(':') ?? []
    const body = {
      pattern: { [args.pattern]: field === undefined || args.match === undefined ? {} : { [field]: args.match } },
      delivery_targets: [
        ...(args.webhook === undefined ? [] : [{ kind: 'webhook', url: args.webhook }]),
        ...(args.channel === undefined ? [] : [{ kind: 'channel', channel, to: to.join(':') }]),
      ],
      ...omitUndefined({
        prompt_template: args.prompt,
        max_fires: args.max === undefined ? undefined : Number(args.max),
        workflow_id: args.workflow,
      }),
    }
    const made = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireAgent(client, args.agent)
      const Made = v.looseObject({ trigger_id: v.string(), agent_id: v.string() })
      return client.call('POST', '/api/triggers', Made, { body: { ...body, agent_id: id } })
    })
    if (args.json) printJson(made)
    else print(`Trigger ${made.trigger_id} waits for ${args.pattern}.`)
    return exits.ok
  },
})
