import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { fileArgs, sendFile } from './file.ts'

export default defineCommand({
  description: 'Check a file with workflows: agents, variables, conditions and limits. Creates nothing.',
  args: fileArgs,
  examples: [['svc workflow validate article.toml', 'names step and field of what is wrong']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => sendFile(client, args.file, true))
    if (args.json) printJson(answer)
    else
      for (const { name, steps } of answer.workflows)
        print(`workflow "${escapeControls(name)}" is valid: ${steps} ${steps === 1 ? 'step' : 'steps'}`)
    return exits.ok
  },
})
