import { defineCommand } from 'svc/cli'
import { integrationArgs } from './client.ts'
import { switchIntegration } from './switch.ts'

export default defineCommand({
  description: 'Switch an integration on again.',
  args: integrationArgs,
  examples: [['svc integration enable github', 'agents can use it again']],
  run: (args) => switchIntegration(args, true),
})
