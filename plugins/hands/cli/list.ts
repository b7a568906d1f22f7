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
import { agentsOf, HandList, InstanceList, nameOf, timeOf } from './client.ts'

export default defineCommand({
  description: 'List the hands: those that come with svc and those of <home>/hands, and what works now.',
  args: { active: { type: 'boolean', description: 'Only the instances' }, ...clientArgs },
  examples: [
    ['svc hand list', 'what there is'],
    ['svc hand list --active', 'what works now'],
  ],
  async run(args) {
    const { hands, instances, problems } = await callDaemon(await connect(args), async (client) => ({
      ...(await client.call('GET', '/api/hands', HandList)),
      ...(await client.call('GET', '/api/hands/active', InstanceList)),
    }))
    for (const { path, error } of problems) note(`svc: warning: not usable: ${escapeControls(`${path}: ${error}`)}`)
    if (args.json) printJson(args.active === true ? { instances } : { hands, instances, problems })
    else {
      const active = renderTable(
        ['INSTANCE', 'AGENTS', 'STATUS', 'NEXT RUN'],
        instances.map((one) => [
          nameOf(one),
          agentsOf(one),
          escapeControls([one.status.slice(0, 60), ...one.lacks.slice(0, 1).map((what) => `lacks ${what}`)].join(', ')),
          timeOf(one.next_run),
        ]),
      )
      const all = renderTable(
        ['HAND', 'CATEGORY', 'READY', 'WHAT IT DOES'],
        hands.map(({ id, category, requirements_met: met, description }) =>
          [id, category, met ? 'yes' : 'no', description].map((text) => escapeControls(text)),
        ),
      )
      const shown = instances.length === 0 ? 'No hand is active.' : active
      print(args.active === true ? shown : `${all}\n\n${shown}`)
    }
    return exits.ok
  },
})
