import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { firesOf, listTriggers, namesOfAgents, patternOf } from './trigger.ts'

export default defineCommand({
  description: 'List the triggers with how often they fired.',
  args: clientArgs,
  examples: [
    ['svc trigger list', 'what fires for what'],
    ["svc trigger list --json | jq -r '.[].id'", 'ids for a script'],
  ],
  async run(args) {
    const { triggers, names } = await callDaemon(await connect(args), async (client) => ({
      triggers: await listTriggers(client),
      names: await namesOfAgents(client),
    }))
    if (args.json) printJson(triggers)
    else if (triggers.length === 0)
      print(`There are no triggers. ${commandLine('trigger add assistant agent_spawned')} makes one.`)
    else
      print(
        renderTable(
          ['EVENT', 'AGENT', 'FIRED', 'LAST', 'STATE', 'ID'],
          triggers.map((each) => [
            escapeControls(patternOf(each)),
            escapeControls(names.get(each.agent_id) ?? each.agent_id),
            firesOf(each),
            renderTime(each.last_fired, 'second'),
            each.enabled ? 'enabled' : 'disabled',
            each.id,
          ]),
        ),
      )
    return exits.ok
  },
})
