import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  note,
  paint,
  print,
  terminalMode,
} from 'svc/cli'

const levels = ['error', 'warn', 'info', 'debug', 'trace']
const Line = v.looseObject({
  timestamp: v.string(),
  level: v.string(),
  tag: v.string(),
  message: v.string(),
  fields: v.optional(v.record(v.string(), v.unknown()), {}),
  missed: v.optional(v.number()),
})
type Line = v.InferOutput<typeof Line>

export default defineCommand({
  description: 'Show the newest lines of the log of the daemon, and with --follow those that come. Times are UTC.',
  args: {
    follow: { type: 'boolean', alias: 'f', description: 'Go on with new lines until Ctrl-C' },
    level: {
      type: 'enum',
      options: levels,
      default: 'info',
      description: 'Least important level to show; the daemon keeps none below its log_level',
    },
    filter: { type: 'string', valueHint: 'text', description: 'Only lines with this text, whatever its case' },
    tail: { type: 'string', valueHint: 'number', default: '100', description: 'How many lines back, 0 to 500' },
    ...clientArgs,
  },
  examples: [
    ['svc logs', 'the newest 100 lines'],
    ['svc logs --follow --level warn', 'warnings and errors as they come'],
    ['svc logs --filter telegram --tail 500', 'what one channel did'],
    ['svc logs --json', 'a JSON object a line, for a script'],
  ],
  async run(args) {
    if (!/^\d{1,3}$/.test(args.tail) || Number(args.tail) > 500)
      throw new Failure(exits.usage, `--tail: expected 0 to 500, found "${args.tail}"`)
    const query = new URLSearchParams({
      level: args.level,
      tail: args.tail,
      follow: String(args.follow === true),
      ...(args.filter !== undefined && { filter: args.filter }),
    })
    const { colored } = terminalMode()
    await callDaemon(await connect(args), async (client) => {
      for await (const { data } of client.stream('GET', `/api/logs/stream?${query}`, {})) {
        const line = v.parse(Line, data)
        if (args.json) print(JSON.stringify(line))
        else show(line, colored)
      }
    })
    return exits.ok
  },
})

function show({ timestamp, level, tag, message, fields, missed }: Line, colored: boolean): void {
  if (missed !== undefined) note(`(${missed} lines were missed: they came faster than they were read)`)
  const at = timestamp.slice(0, 23).replace('T', ' ')
  const facts = Object.entries(fields).map(
    ([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const where = tag === '' ? '' : `[${tag}] `
  print(
    `${paint(colored, 90, at)} ${paint(colored, colors[level] ?? 0, level.padEnd(5))} ` +
      escapeControls(`${where}${message}${facts.join('')}`, true),
  )
}
const colors: Readonly<Record<string, number>> = { fatal: 31, error: 31, warn: 33, info: 36, debug: 90, trace: 90 }
