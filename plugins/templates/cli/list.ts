import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listTemplates } from './client.ts'

export default defineCommand({
  description: 'List the templates of agents: those that come with svc and those of <home>/templates.',
  args: {
    category: { type: 'string', description: 'Only those of this category', valueHint: 'development' },
    ...clientArgs,
  },
  examples: [
    ['svc template list', 'what there is'],
    ['svc template list --category development', 'of one category'],
    ["svc template list --json | jq -r '.templates[].name'", 'names for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listTemplates)
    const templates = answer.templates.filter(
      ({ category }) => args.category === undefined || category === args.category,
    )
    for (const { path, line, key, error } of answer.problems)
      note(
        `svc: warning: not usable: ${escapeControls([line === null ? path : `${path}:${line}`, key, error].filter((part) => part !== null).join(': '))}`,
      )
    if (args.json) printJson({ ...answer, templates, total: templates.length })
    else if (templates.length === 0) {
      const categories = [...new Set(answer.templates.map(({ category }) => category))].toSorted()
      print(`There are none of this category. There are: ${escapeControls(categories.join(', '))}.`)
    } else
      print(
        renderTable(
          ['NAME', 'CATEGORY', 'TIER', 'WHAT IT DOES'],
          templates.map(({ name, category, tier, description }) =>
            [name, category, tier, description].map((text) => escapeControls(text)),
          ),
        ),
      )
    return exits.ok
  },
})
