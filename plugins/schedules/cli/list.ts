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
import { listSchedules, stateOf, whenOf } from './schedule.ts'

export default defineCommand({
  description: 'List the schedules and cron jobs with their next times and last results.',
  args: clientArgs,
  examples: [
    ['svc schedule list', 'what runs when'],
    ["svc schedule list --json | jq -r '.schedules[].id'", 'ids for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listSchedules)
    if (args.json) printJson(answer)
    else if (answer.schedules.length === 0)
      print(`There are no schedules. ${commandLine('schedule add assistant "daily at 9" "What is new?"')} makes one.`)
    else
      print(
        renderTable(
          ['NAME', 'WHEN', 'NEXT', 'LAST', 'ID'],
          answer.schedules.map((each) => [
            escapeControls(each.name),
            whenOf(each),
            renderTime(each.next_run),
            stateOf(each),
            each.id,
          ]),
        ),
      )
    return exits.ok
  },
})
