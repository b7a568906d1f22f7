import { decisionCommand, REASON } from './decision-command.ts'

export default decisionCommand('reject', {
  description: 'Reject the requested action; the agent gets the rejection, and the reason if one is given.',
  args: REASON,
  examples: [
    ['svc approval reject 0f6a9c1e', 'the waiting agent gets the rejection'],
    ['svc approval reject 0f6a9c1e --reason "use the copy"', 'and reads why'],
  ],
})
