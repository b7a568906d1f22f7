import { commandLine, escapeControls, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { HandList, InstanceList, nameOf } from './client.ts'

/** Whether every hand can be used, and every instance works. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { hands, problems } = await daemon.call('GET', '/api/hands', HandList)
  const { instances } = await daemon.call('GET', '/api/hands/active', InstanceList)
  const [bad] = problems
  if (bad) return warned(escapeControls(`${bad.path}: ${bad.error}`), 'mend the file; the others are used')
  const failed = instances.filter(({ status }) => status.startsWith('Error'))
  if (failed[0])
    return warned(
      failed.map((one) => `${nameOf(one)}: ${escapeControls(one.status.slice(0, 200))}`).join('; '),
      `mend the cause; then ${commandLine(`hand resume ${nameOf(failed[0])}`)} if it was disabled`,
    )
  const without = instances.find(({ status, lacks }) => status === 'Active' && lacks[0]?.startsWith('the setting'))
  if (without)
    return warned(
      escapeControls(`${nameOf(without)} lacks ${without.lacks[0]}`),
      `set it with ${commandLine(`hand settings ${nameOf(without)} <key> <value>`)}`,
    )
  const lacking = hands.filter(({ active, requirements_met: met }) => active && !met)
  if (lacking[0])
    return warned(
      `lack something: ${lacking.map(({ id }) => id).join(', ')}`,
      commandLine(`hand check ${lacking[0].id}`),
    )
  return passed(`${hands.length} hands, ${instances.length} active`)
}
export default check
