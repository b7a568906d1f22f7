import * as v from 'valibot'
import { escapeControls, passed } from 'svc/cli'
import type { Check } from 'svc/cli'

const Model = v.nullable(v.looseObject({ provider: v.string(), model: v.string() }))
const Listing = v.looseObject({ used: v.record(v.string(), Model) })

/** Which provider makes what for agents, and what none makes. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { used } = await daemon.call('GET', '/api/media/providers', Listing)
  const made = Object.entries(used).flatMap(([kind, by]) => (by ? [`${kind} by ${by.provider}/${by.model}`] : []))
  const missing = Object.entries(used).flatMap(([kind, by]) => (by ? [] : [kind]))
  const lack = missing.length === 0 ? [] : [`no provider with a key makes ${missing.join(', ')}`]
  return passed(escapeControls([...made, ...lack].join('; ')))
}
export default check
