import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { Canvas, canvasArgs, requireCanvasId } from './canvas.ts'

export default defineCommand({
  description: 'Show a canvas as text, or its HTML.',
  args: {
    ...canvasArgs,
    html: { type: 'boolean', description: 'Print the HTML, in which nothing runs or is loaded' },
  },
  examples: [
    ['svc canvas show 0198c0de', 'as text, by the beginning of its id'],
    ['svc canvas show 0198c0de --html > report.html', 'into a file'],
  ],
  async run(args) {
    const canvas = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/canvas/${await requireCanvasId(client, args.canvas)}`, Canvas),
    )
    if (args.json) printJson(canvas)
    else if (args.html) print(canvas.html)
    else print([canvas.title, ...canvas.text.split('\n')].map((line) => escapeControls(line)).join('\n'))
    return exits.ok
  },
})
