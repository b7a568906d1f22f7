import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { pathOf, skillArg, Variables } from './client.ts'

const sources: Readonly<Record<string, string>> = {
  vault: 'the vault',
  environment: 'the environment',
  default: 'the default',
}

export default defineCommand({
  description: 'List the variables of a skill, and where their values are from. The values are not shown.',
  args: { skill: skillArg, ...clientArgs },
  examples: [['svc skill config list api-tester', 'what it can be told']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', pathOf(args.skill), Variables))
    if (args.json) printJson(answer)
    else if (answer.variables.length === 0) print(`The skill "${answer.skill}" has no variables.`)
    else
      print(
        renderTable(
          ['VARIABLE', 'REQUIRED', 'VALUE FROM', 'WHAT IT IS'],
          answer.variables.map(({ name, required, source, description }) => [
            name,
            required ? 'yes' : 'no',
            source === null ? 'nobody' : (sources[source] ?? source),
            escapeControls(description),
          ]),
        ),
      )
    return exits.ok
  },
})
