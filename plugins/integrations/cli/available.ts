import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  omitUndefined,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listAvailable } from './client.ts'

export default defineCommand({
  description: 'List the catalogue of integrations, or those that match a word.',
  args: {
    q: { type: 'positional', required: false, description: 'Words in the name, the description or the tags' },
    category: { type: 'string', description: 'Only those of one category', valueHint: 'devtools' },
    ...clientArgs,
  },
  examples: [
    ['svc integration available', 'the whole catalogue'],
    ['svc integration available database', 'those for databases'],
  ],
  async run(args) {
    const query = omitUndefined({ q: args.q, category: args.category })
    const answer = await callDaemon(await connect(args), (client) => listAvailable(client, query))
    for (const { file, message } of answer.problems) note(`${escapeControls(file)}: ${escapeControls(message)}`)
    if (args.json) printJson(answer)
    else if (answer.integrations.length === 0) print('The catalogue has nothing of this kind.')
    else
      print(
        renderTable(
          ['ID', 'CATEGORY', 'STATE', 'NEEDS', 'DESCRIPTION'],
          answer.integrations.map((each) => [
            each.id,
            each.category,
            each.status,
            each.needs_login ? 'login' : each.required_env.some(({ required }) => required) ? 'values' : '',
            escapeControls(each.description),
          ]),
        ),
      )
    return exits.ok
  },
})
