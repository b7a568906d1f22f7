import { setEnabledCommand } from './set-enabled.ts'

export default setEnabledCommand(true, 'Start a schedule again that was disabled, by hand or because it failed.')
