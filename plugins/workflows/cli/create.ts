import { callDaemon, commandLine, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { fileArgs, sendFile } from './file.ts'

export default defineCommand({
  description: 'Create workflows from a JSON or TOML file.',
  args: fileArgs,
  examples: [
    ['svc workflow create article.toml', 'from a file'],
    ['svc workflow show article --json | svc workflow create -', 'a copy'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => sendFile(client, args.file, false))
    if (args.json) printJson(answer)
    else
      for (const { name, workflow_id: id } of answer.workflows)
        print(
          `workflow "${escapeControls(name)}" (${id}) was created; run it with: ${commandLine(`workflow run ${id}`)}`,
        )
    return exits.ok
  },
})
