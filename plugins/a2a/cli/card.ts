import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'

const Card = v.looseObject({
  name: v.string(),
  description: v.string(),
  url: v.string(),
  version: v.string(),
  capabilities: v.looseObject({ streaming: v.boolean(), pushNotifications: v.boolean() }),
})

export default defineCommand({
  description: 'Show the card by which other programs find this service, or one of its agents, over A2A.',
  args: {
    agent: { type: 'positional', required: false, description: 'Name of an agent; the service when absent' },
    ...clientArgs,
  },
  examples: [
    ['svc a2a card', 'what others learn of this service'],
    ['svc a2a card scout --json', 'the card of an agent as it is'],
  ],
  async run(args) {
    const file = '.well-known/agent-card.json'
    const path = args.agent === undefined ? `/${file}` : `/a2a/agents/${encodeURIComponent(args.agent)}/${file}`
    const card = await callDaemon(await connect(args), (client) => client.call('GET', path, Card))
    if (args.json) printJson(card)
    else
      print(
        renderFacts([
          ['name', escapeControls(card.name)],
          ['description', escapeControls(card.description)],
          ['address', escapeControls(card.url)],
          ['version', escapeControls(card.version)],
          ['notifications', card.capabilities.pushNotifications ? 'yes' : 'no'],
        ]),
      )
    return exits.ok
  },
})
