import { changeCommand } from './change.ts'

export default changeCommand('stop', 'Deactivate an instance: its agent, sessions and files are removed.', 'it is gone')
