import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { canvasArgs, requireCanvasId } from './canvas.ts'

const Removed = v.looseObject({ canvas_id: v.string() })

export default defineCommand({
  description: 'Delete a canvas. The conversation stays.',
  args: canvasArgs,
  examples: [['svc canvas remove 0198c0de', 'by the beginning of its id']],
  async run(args) {
    const removed = await callDaemon(await connect(args), async (client) =>
      client.call('DELETE', `/api/canvas/${await requireCanvasId(client, args.canvas)}`, Removed),
    )
    if (args.json) printJson(removed)
    else print(`Canvas ${removed.canvas_id} is deleted.`)
    return exits.ok
  },
})
