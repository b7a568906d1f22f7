import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { fileArgs, sendFile } from './file.ts'

export default defineCommand({
  description: 'Import workflows that a compatible service stored; says what has no counterpart here.',
  args: { ...fileArgs, check: { type: 'boolean', description: 'Create nothing' } },
  examples: [
    ['svc workflow import workflows.json', 'one workflow or a list'],
    ['svc workflow import workflows.json --check', 'only say what would be created'],
  ],
  async run(args) {
    const check = args.check ?? false
    const answer = await callDaemon(await connect(args), (client) => sendFile(client, args.file, check))
    if (args.json) printJson(answer)
    else
      for (const { name, steps, workflow_id: id } of answer.workflows)
        print(`${id ?? 'would be created'}  ${escapeControls(name)}  ${steps} ${steps === 1 ? 'step' : 'steps'}`)
    return exits.ok
  },
})
