import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  print,
  printJson,
} from 'svc/cli'
import { agentsOf, handArgs, Instance, nameOf, readValues, timeOf } from './client.ts'

export default defineCommand({
  description: 'Make an agent of a hand and wake it by its schedule.',
  args: {
    ...handArgs,
    set: { type: 'string', description: 'Settings, separated by semicolons', valueHint: 'key=value; …' },
    name: { type: 'string', description: 'Name of the instance, for a second one', valueHint: 'name' },
    ...clientArgs,
  },
  examples: [
    ['svc hand activate researcher --set "question=How fast do tidal flats rise?; depth=quick"', 'with settings'],
    ['svc hand activate collector --name tides --set subject=tides', 'a second instance'],
  ],
  async run(args) {
    const config = readValues(args.set)
    const made = await callDaemon(await connect(args), (client) =>
      client.call('POST', `/api/hands/${encodeURIComponent(args.hand)}/activate`, Instance, {
        body: { config, ...(args.name !== undefined && { instance_name: args.name }) },
      }),
    )
    for (const what of made.lacks) {
      const [, key] = /^the setting "([^"]+)"/.exec(what) ?? []
      const mend = key === undefined ? `hand check ${made.hand_id}` : `hand settings ${nameOf(made)} ${key} …`
      note(escapeControls(`svc: warning: it lacks ${what}: ${commandLine(mend)}`))
    }
    if (args.json) printJson(made)
    else
      print(
        `${nameOf(made)} is active as ${made.agents.length > 1 ? `agents ${agentsOf(made)}` : `agent "${made.agent_name}"`}, first run ${timeOf(made.next_run)}\n` +
          `${commandLine(`hand stats ${made.hand_id}`)} shows what it records`,
      )
    return exits.ok
  },
})
