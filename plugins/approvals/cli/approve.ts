import { decisionCommand } from './decision-command.ts'

export default decisionCommand('approve', {
  description: 'Let an agent do exactly what it asked for, once.',
  meaning: 'the agent that waits goes on',
})
