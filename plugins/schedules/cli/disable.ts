import { setEnabledCommand } from './set-enabled.ts'

export default setEnabledCommand(false, 'Stop a schedule without removing it. Times that pass are not made up for.')
