import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listFiles, listWorkflows } from './client.ts'

export default defineCommand({
  description: 'List the workflows.',
  args: clientArgs,
  examples: [['svc workflow list', 'all of them, the oldest first']],
  async run(args) {
    const { workflows, files } = await callDaemon(await connect(args), async (client) => ({
      workflows: await listWorkflows(client),
      files: await listFiles(client),
    }))
    if (args.json) printJson(workflows)
    else if (workflows.length === 0)
      print(`There is no workflow. ${commandLine('workflow create <file>')} creates one.`)
    else
      print(
        renderTable(
          ['NAME', 'STEPS', 'FILE', 'ID', 'DESCRIPTION'],
          workflows.map(({ name, steps, file, id, description }) => [
            escapeControls(name),
            String(steps),
            file ?? '',
            id,
            escapeControls(description),
          ]),
        ),
      )
    for (const { file, problem } of files)
      if (problem !== null) note(`svc: warning: workflows/${file}: ${escapeControls(problem)}`)
    return exits.ok
  },
})
