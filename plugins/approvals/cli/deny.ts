import { decisionCommand } from './decision-command.ts'

export default decisionCommand('reject', {
  name: 'deny',
  description: 'Reject the requested action; the agent gets the rejection. The same as reject.',
  meaning: 'the waiting agent gets the rejection',
})
