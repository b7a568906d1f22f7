/** The reason of the signal of a step whose time is over. */
export class StepTimeout extends Error {
  override readonly name = 'StepTimeout'
  constructor(secs: number) {
    super(`it took longer than ${secs} seconds`)
  }
}
