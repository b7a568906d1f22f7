import { changeCommand } from './change.ts'

export default changeCommand('pause', 'Wake an instance no more; what it does now it ends.', 'it rests')
