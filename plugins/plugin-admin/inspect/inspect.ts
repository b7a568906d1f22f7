import * as v from 'valibot'
import { forkProcess, readableByLoader } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { Inspection, InspectionProblem } from './inspection.ts'

/**
 * What the plugin in a folder declares. Its code is evaluated for that, in a process without the environment of the
 * daemon, which reads only this folder and svc itself. Throws `invalid_request` with what is wrong with it.
 */
export function inspectPlugin(folder: string, timeoutMs: number): Promise<Inspection> {
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void =>
      reject(new Refusal('invalid_request', `The plugin cannot be installed: ${reason.replaceAll(`${folder}/`, '')}`))
    const child = forkProcess('plugin-admin', 'inspect', {
      readable: [folder, ...readableByLoader()],
      onMessage(message) {
        const problem = v.safeParse(InspectionProblem, message)
        const found = v.safeParse(Inspection, message)
        if (found.success) resolve(found.output)
        else refuse(problem.success ? problem.output.problem : 'it does not say what it declares')
        child.kill()
      },
      onExit() {
        clearTimeout(timer)
        refuse('its code ended the process that reads it')
      },
    })
    const timer = setTimeout(() => {
      refuse(`its code was not read within inspect_timeout_ms (${timeoutMs})`)
      child.kill()
    }, timeoutMs)
    child.send({ folder })
  })
}
