import { commandLine, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { listChannels } from './client.ts'

/** Whether every enabled channel is connected. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { channels } = await listChannels(daemon)
  const enabled = channels.filter(({ enabled: isEnabled }) => isEnabled)
  const broken = enabled.filter(({ state }) => state !== 'connected' && state !== 'disabled' && state !== 'connecting')
  if (broken.length === 0) return passed(enabled.length === 0 ? 'none is enabled' : `${enabled.length} enabled`)
  const names = broken.map(({ name, state }) => `${name} (${state.replaceAll('_', ' ')})`).join(', ')
  return warned(`not connected: ${names}`, `${commandLine(`channels status ${broken[0]?.name ?? ''}`)} says why`)
}
export default check
