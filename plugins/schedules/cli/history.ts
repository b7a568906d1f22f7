import * as v from 'valibot'
import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
  shorten,
} from 'svc/cli'
import { requireSchedule, scheduleArgs } from './schedule.ts'

const text = v.nullable(v.string())
const Slots = v.looseObject({
  slots: v.array(
    v.looseObject({
      slot: v.string(),
      kind: v.string(),
      state: v.string(),
      reason: text,
      detail: text,
      late_ms: v.number(),
      result: text,
      error: text,
    }),
  ),
})

export default defineCommand({
  description: 'List the past runs of a schedule, the newest first, and why some were skipped.',
  args: scheduleArgs,
  examples: [['svc schedule history news', 'the last fifty']],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireSchedule(client, args.schedule)
      return client.call('GET', `/api/schedules/${id}/slots`, Slots)
    })
    if (args.json) printJson(answer)
    else if (answer.slots.length === 0) print('It has not run yet.')
    else
      print(
        renderTable(
          ['TIME', 'STATE', 'LATE', 'WHAT'],
          answer.slots.map(({ slot, kind, state, reason, detail, late_ms: late, result, error }) => [
            renderTime(slot),
            kind === 'manual' ? `${state} (by hand)` : (reason ?? state),
            late >= 1000 ? `${Math.round(late / 1000)} s` : '',
            shorten(escapeControls(detail ?? error ?? result ?? ''), 80),
          ]),
        ),
      )
    return exits.ok
  },
})
