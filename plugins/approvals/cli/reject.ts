import { decisionCommand } from './decision-command.ts'

export default decisionCommand('reject', {
  description: 'Reject the requested action; the agent gets the rejection.',
  examples: [['svc approval reject 0f6a9c1e', 'the waiting agent gets the rejection']],
})
