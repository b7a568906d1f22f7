import { setEnabledCommand } from './set-enabled.ts'

export default setEnabledCommand(false, 'Stop a trigger without removing it.')
