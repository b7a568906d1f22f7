import { changeCommand } from './change-run.ts'

export default changeCommand(
  'pause',
  'Pause a run: the step that runs is finished, and none is begun after it.',
  'is paused',
)
