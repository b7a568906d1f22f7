import * as v from 'valibot'
import { readableByLoader, readProcess } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'
import { Inspection, InspectionProblem, shortProblem } from './inspection.ts'
import type { InspectionTask } from './inspection.ts'

export interface InspectionLimits {
  readonly inspect_timeout_ms: number
  readonly max_inspection_bytes: number
  readonly max_problem_chars: number
}

/**
 * What the plugin in a folder declares. Its code is evaluated for that, in a process without the environment of the
 * daemon, which reads only this folder and svc itself. Throws `invalid_request` with what is wrong with it.
 */
export function inspectPlugin(folder: string, limits: InspectionLimits): Promise<Inspection> {
  const { inspect_timeout_ms: timeoutMs, max_inspection_bytes: maxBytes, max_problem_chars: maxProblemChars } = limits
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void =>
      reject(new Refusal('invalid_request', `The plugin cannot be installed: ${reason.replaceAll(`${folder}/`, '')}`))
    const settle = (answer: string): void => {
      const message = parseAnswer(answer)
      const found = v.safeParse(Inspection, message)
      const problem = v.safeParse(InspectionProblem, message)
      if (found.success) resolve(found.output)
      else
        refuse(
          problem.success ? shortProblem(problem.output.problem, maxProblemChars) : 'it does not say what it declares',
        )
    }
    const received: Buffer[] = []
    let bytes = 0
    const child = readProcess('plugin-admin', 'inspect', {
      readable: [folder, ...readableByLoader()],
      argument: JSON.stringify({ folder, maxProblemChars } satisfies InspectionTask),
      onData(chunk) {
        if (bytes > maxBytes) return
        bytes += chunk.length
        received.push(chunk)
        const isWhole = chunk.includes('\n')
        if (bytes > maxBytes) refuse(`what it declares is longer than max_inspection_bytes (${maxBytes})`)
        else if (isWhole) settle(Buffer.concat(received).toString().split('\n', 1)[0] ?? '')
        if (isWhole || bytes > maxBytes) child.kill()
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
