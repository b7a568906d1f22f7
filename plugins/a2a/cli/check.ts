import * as v from 'valibot'
import { commandLine, escapeControls, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { ExternalAgent } from './external.ts'

/** Whether agents elsewhere wait for a person, such as one whose card changed. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { agents } = await daemon.call('GET', '/api/a2a/agents', v.looseObject({ agents: v.array(ExternalAgent) }))
  const waiting = agents.filter(({ status }) => status === 'pending')
  const [first] = waiting
  if (!first) return passed(agents.length === 0 ? 'no agents elsewhere' : `${agents.length} known, all trusted`)
  return warned(
    `not trusted: ${waiting.map(describeAgent).join('; ')}`,
    `${commandLine(`a2a discover ${first.url}`)} shows the card, ${commandLine(`a2a approve ${first.id}`)} trusts it`,
  )
}
export default check

function describeAgent({ name, difference }: ExternalAgent): string {
  if (difference.length === 0) return escapeControls(name)
  return escapeControls(`${name} (its card changed: ${difference.map(({ field }) => field).join(', ')})`)
}
