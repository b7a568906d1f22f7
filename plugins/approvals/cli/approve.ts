import { decisionCommand } from './decision-command.ts'

export default decisionCommand('approve', {
  description:
    'Approve exactly the requested action, once. Where it has a form, --set fills in a field; a terminal is asked for ' +
    'the others.',
  args: {
    set: { type: 'string', valueHint: 'name=value', description: 'Fill in a field of its form; may be repeated' },
  },
  examples: [
    ['svc approval approve 0f6a9c1e', 'the waiting agent goes on'],
    ['svc approval approve 0f6a9c1e --set city=Oslo --set nights=3', 'fills in its form'],
  ],
})
