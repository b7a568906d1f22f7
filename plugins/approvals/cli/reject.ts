import { decisionCommand } from './decision-command.ts'

export default decisionCommand('reject', {
  description: 'Reject the requested action; the agent gets the rejection.',
  meaning: 'the waiting agent gets the rejection',
})
