import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'
import { agentArg, Budget, budgetPath, renderBudget } from './budget.ts'

const limit = (description: string) => ({ type: 'string', valueHint: 'limit', description }) as const

export default defineCommand({
  description:
    'Set what all agents together, or one of them, may spend. 0 is unlimited; "default" goes back to the ' +
    'configuration, or to the manifest of the agent. It counts at once and survives restarts.',
  args: {
    ...agentArg,
    hourly: limit('USD an hour'),
    daily: limit('USD a day'),
    monthly: limit('USD a month'),
    tokens: limit('Tokens an hour; without --agent that of every agent whose manifest sets none'),
    ...clientArgs,
  },
  examples: [
    ['svc budget set --daily 5 --monthly 50', 'of all agents together'],
    ['svc budget set --agent scout --daily 0.5', 'of one agent'],
    ['svc budget set --daily default', 'as the configuration says'],
  ],
  async run(args) {
    const tokens = readLimit('tokens', args.tokens)
    const body = omitUndefined({
      hourly_limit_usd: readLimit('hourly', args.hourly),
      daily_limit_usd: readLimit('daily', args.daily),
      monthly_limit_usd: readLimit('monthly', args.monthly),
      ...(args.agent === undefined ? { default_max_llm_tokens_per_hour: tokens } : { max_llm_tokens_per_hour: tokens }),
    })
    if (Object.keys(body).length === 0)
      throw new Failure(
        exits.usage,
        'no limit was given',
        `give --hourly, --daily, --monthly or --tokens: ${commandLine('budget set --daily 5')}`,
      )
    const budget = await callDaemon(await connect(args), async (client) =>
      client.call('PUT', await budgetPath(client, args.agent), Budget, { body }),
    )
    if (args.json) printJson(budget)
    else print(escapeControls(renderBudget(budget), true))
    return exits.ok
  },
})

/** `null` leaves the limit to the configuration or the manifest. */
function readLimit(flag: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined
  if (text === 'default') return null
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text)
  throw new Failure(
    exits.usage,
    `--${flag}: expected a number or "default", found "${text}"`,
    `for example --${flag} ${flag === 'tokens' ? '200000' : '2.5'}; 0 is unlimited`,
  )
}
