import * as v from 'valibot'
import { clientArgs, defineCommand } from './command.ts'
import { callDaemon, connect } from './connect.ts'
import { exits } from './failure.ts'
import { note, print, printJson } from './output.ts'

const MAX_IN_LINE = 3
const MAX_LINES = 20

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
          : renderKeys('In force now', answer.changed),
      )
      if (answer.restart_reasons.length > 0) print(renderKeys('After a restart', answer.restart_reasons))
    }
    return answer.failed.length > 0 ? exits.failed : exits.ok
  },
})

/** A few in a line, more below each other, and of very many the first ones. */
function renderKeys(title: string, keys: readonly string[]): string {
  if (keys.length <= MAX_IN_LINE) return `${title}: ${keys.join(', ')}`
  const more = keys.length > MAX_LINES ? [`and ${keys.length - MAX_LINES} more; --json has all of them`] : []
  return [`${title}, ${keys.length} keys:`, ...[...keys.slice(0, MAX_LINES), ...more].map((line) => `  ${line}`)].join(
    '\n',
  )
}
