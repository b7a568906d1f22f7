import { setEnabledCommand } from './set-enabled.ts'

export default setEnabledCommand(true, 'Start a trigger again. Events of the time in between do not count.')
