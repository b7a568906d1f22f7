import * as v from 'valibot'
import { clientArgs, command } from './command.ts'
import { ask, connect } from './connect.ts'
import { exits } from './failure.ts'
import { print, printJson, renderDuration, renderFacts } from './output.ts'

const Status = v.looseObject({
  status: v.string(),
  agent_count: v.number(),
  uptime_seconds: v.number(),
  data_dir: v.optional(v.string()),
  default_provider: v.nullish(v.string()),
  default_model: v.nullish(v.string()),
})
const Version = v.looseObject({ version: v.string() })
const Detail = v.looseObject({
  status: v.string(),
  panic_count: v.optional(v.number(), 0),
  database: v.optional(v.string(), ''),
  config_warnings: v.optional(v.array(v.string()), []),
})

export default command({
  description: 'Show whether the daemon runs, its health and its warnings.',
  args: clientArgs,
  examples: [
    ['svc status', 'the daemon of the home'],
    ['svc status --json', 'the same for scripts'],
    ['svc status --url http://127.0.0.1:4545', 'a daemon by its address'],
  ],
  async run(args) {
    const connection = await connect(args)
    const [status, health, version] = await ask(connection, (client) =>
      Promise.all([
        client.call('GET', '/api/status', Status),
        client.call('GET', '/api/health/detail', Detail),
        client.call('GET', '/api/version', Version),
      ]),
    )
    const { client, pid } = connection
    if (args.json)
      printJson({ running: true, url: client.url, pid: pid ?? null, version: version.version, ...status, health })
    else {
      print(
        renderFacts([
          ['svc', `${version.version}, ${health.status}, up ${renderDuration(status.uptime_seconds)}`],
          ['address', client.url],
          ...(pid === undefined ? [] : [['process', String(pid)] as const]),
          ['agents', String(status.agent_count)],
          [
            'model',
            `${status.default_provider ?? 'found by itself'}${status.default_model ? ` / ${status.default_model}` : ''}`,
          ],
          ['database', health.database],
          ['data', status.data_dir ?? ''],
          ...(health.panic_count > 0
            ? [['defects', `${health.panic_count} since the start; the log has them`] as const]
            : []),
          ...health.config_warnings.map((warning) => ['warning', warning] as const),
        ]),
      )
    }
    return health.status === 'ok' ? exits.ok : exits.failed
  },
})
