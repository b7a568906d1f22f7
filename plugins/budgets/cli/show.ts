import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { agentArg, Budget, budgetPath, renderBudget } from './budget.ts'

export default defineCommand({
  description: 'Show what agents may spend and what they spent. Hours, days and months are those of UTC.',
  args: { ...agentArg, ...clientArgs },
  examples: [
    ['svc budget', 'of all agents together'],
    ['svc budget show --agent scout', 'of one agent'],
  ],
  async run(args) {
    const budget = await callDaemon(await connect(args), async (client) =>
      client.call('GET', await budgetPath(client, args.agent), Budget),
    )
    if (args.json) printJson(budget)
    else print(escapeControls(renderBudget(budget), true))
    return exits.ok
  },
})
