import { changeCommand } from './change.ts'

export default changeCommand('resume', 'Let a paused instance go on. Earlier failures are forgotten.', 'it goes on')
