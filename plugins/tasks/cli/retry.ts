import { changeCommand } from './task.ts'

export default changeCommand(
  'retry',
  'Have a task done again that failed, was cancelled or is completed.',
  'The task waits again.',
)
