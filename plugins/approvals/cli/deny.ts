import { decisionCommand, REASON } from './decision-command.ts'

export default decisionCommand('reject', {
  description: 'Reject the requested action; the agent gets the rejection. The same as reject.',
  args: REASON,
  examples: [['svc approval deny 0f6a9c1e', 'the waiting agent gets the rejection']],
})
