import { decisionCommand } from './decision-command.ts'

export default decisionCommand('reject', {
  description: 'Do not let an agent do what it asked for; it is told so.',
  meaning: 'the agent that waits is told no',
})
