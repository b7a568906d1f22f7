import { answering } from './approvals.ts'

export default answering('approve', {
  description: 'Let an agent do exactly what it asked for, once.',
  meaning: 'the agent that waits goes on',
})
