import { defineCommand } from 'svc/cli'
import { integrationArgs } from './client.ts'
import { switchIntegration } from './switch.ts'

export default defineCommand({
  description: 'Switch an integration off: its program ends, and agents cannot use it. Its secrets stay.',
  args: integrationArgs,
  examples: [['svc integration disable github', 'until "svc integration enable github"']],
  run: (args) => switchIntegration(args, false),
})
