import { changeCommand } from './change-run.ts'

export default changeCommand('resume', 'Go on with a paused run.', 'goes on')
