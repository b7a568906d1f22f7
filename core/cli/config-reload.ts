import * as v from 'valibot'
import { clientArgs, defineCommand } from './command.ts'
import { callDaemon, connect } from './connect.ts'
import { exits } from './failure.ts'
import { note, print, printJson } from './output.ts'

const Changes = v.looseObject({
  status: v.string(),
  changed: v.array(v.string()),
  restart_reasons: v.array(v.string()),
  warnings: v.array(v.string()),
  failed: v.array(v.object({ plugin: v.string(), reason: v.string() })),
})

export default defineCommand({
  description: 'Let the running daemon read its configuration again. A file with a mistake changes nothing.',
  args: clientArgs,
  examples: [['svc config reload', 'after editing config.toml']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/config/reload', Changes, { timeoutMs: 120_000 }),
    )
    if (args.json) printJson(answer)
    else {
      for (const warning of answer.warnings) note(`warning: ${warning}`)
      for (const { plugin, reason } of answer.failed)
        note(`warning: plugin "${plugin}" goes on with its old section: ${reason}`)
      print(
        answer.changed.length === 0
          ? 'Nothing changed that could hold at once.'
          : `In force now: ${answer.changed.join(', ')}`,
      )
      if (answer.restart_reasons.length > 0) print(`After a restart: ${answer.restart_reasons.join(', ')}`)
    }
    return answer.failed.length > 0 ? exits.failed : exits.ok
  },
})
