import { changeCommand } from './task.ts'

export default changeCommand(
  'cancel',
  'Cancel a task that has not ended. A turn that works on it is stopped.',
  'The task is cancelled.',
)
