import * as v from 'valibot'
import { readableByLoader, readProcess } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import { Inspection, InspectionProblem } from './inspection.ts'

/** More than the largest list of permissions that is accepted. */
const MAX_ANSWER_BYTES = 2_097_152

/**
 * What the plugin in a folder declares. Its code is evaluated for that, in a process without the environment of the
 * daemon, which reads only this folder and svc itself. Throws `invalid_request` with what is wrong with it.
 */
export function inspectPlugin(folder: string, timeoutMs: number): Promise<Inspection> {
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void =>
      reject(new Refusal('invalid_request', `The plugin cannot be installed: ${reason.replaceAll(`${folder}/`, '')}`))
    const settle = (answer: string): void => {
      const message = parseAnswer(answer)
      const found = v.safeParse(Inspection, message)
      const problem = v.safeParse(InspectionProblem, message)
      if (found.success) resolve(found.output)
      else refuse(problem.success ? problem.output.problem : 'it does not say what it declares')
    }
    const received: Buffer[] = []
    let bytes = 0
    const child = readProcess('plugin-admin', 'inspect', {
      readable: [folder, ...readableByLoader()],
      argument: folder,
      onData(chunk) {
        if (bytes > MAX_ANSWER_BYTES) return
        bytes += chunk.length
        received.push(chunk)
        const isWhole = chunk.includes('\n')
        if (bytes > MAX_ANSWER_BYTES) refuse(`it says more than ${MAX_ANSWER_BYTES} bytes about what it declares`)
        else if (isWhole) settle(Buffer.concat(received).toString().split('\n', 1)[0] ?? '')
        if (isWhole || bytes > MAX_ANSWER_BYTES) child.kill()
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
  })
}

/** `undefined` for what is no JSON: the code of the plugin can write to the process's answer as well. */
function parseAnswer(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
