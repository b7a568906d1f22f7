import * as v from 'valibot'
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
} from 'svc/cli'

const Rule = v.record(v.string(), v.union([v.string(), v.array(v.string())]))
const List = v.looseObject({ bindings: v.array(v.looseObject({ agent: v.string(), match_rule: Rule })) })

export default defineCommand({
  description: 'List which agent answers whom. The most specific rule decides, and of equal ones the newest.',
  args: clientArgs,
  examples: [['svc channels bindings', 'the rules with their numbers']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', '/api/bindings', List))
    if (args.json) printJson(answer)
    else if (answer.bindings.length === 0)
      print(`There are no bindings. ${commandLine('channels bindings add <agent> --channel telegram')} adds one.`)
    else
      print(
        renderTable(
          ['NUMBER', 'AGENT', 'FOR'],
          answer.bindings.map(({ agent, match_rule: rule }, index) => [
            String(index),
            escapeControls(agent),
            escapeControls(describeRule(rule)),
          ]),
        ),
      )
    return exits.ok
  },
})

function describeRule(rule: v.InferOutput<typeof Rule>): string {
  const parts = Object.entries(rule).map(
    ([key, value]) => `${key} ${Array.isArray(value) ? value.join(' or ') : value}`,
  )
  return parts.length === 0 ? 'everybody' : parts.join(', ')
}
