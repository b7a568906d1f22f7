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
import { requireTrigger, triggerArgs } from './trigger.ts'

const text = v.nullable(v.string())
const History = v.looseObject({
  firings: v.array(
    v.looseObject({
      event: v.string(),
      event_at: v.string(),
      state: v.string(),
      reason: text,
      detail: text,
      result: text,
      error: text,
      text: v.string(),
    }),
  ),
})

export default defineCommand({
  description: 'List what a trigger fired for, the newest event first, and what held it back.',
  args: triggerArgs,
  examples: [['svc trigger history 0192f0c1', 'the last fifty events']],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireTrigger(client, args.trigger)
      return client.call('GET', `/api/triggers/${id}/history`, History)
    })
    if (args.json) printJson(answer)
    else if (answer.firings.length === 0) print('It has matched nothing yet.')
    else
      print(
        renderTable(
          ['TIME', 'EVENT', 'STATE', 'WHAT'],
          answer.firings.map(({ event, event_at: at, state, reason, detail, result, error, text: told }) => [
            renderTime(at, 'second'),
            event,
            reason ?? state,
            shorten(escapeControls(detail ?? error ?? result ?? told), 80),
          ]),
        ),
      )
    return exits.ok
  },
})
