import { changeCommand } from './change-run.ts'

export default changeCommand('cancel', 'Cancel a run, with the step that runs.', 'was cancelled')
