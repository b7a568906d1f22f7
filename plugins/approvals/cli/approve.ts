import { decisionCommand } from './decision-command.ts'

export default decisionCommand('approve', {
  description: 'Approve exactly the requested action, once.',
  meaning: 'the waiting agent goes on',
})
