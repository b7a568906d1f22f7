import { commandLine, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { describeMissing, Status } from './peer.ts'

/** Whether the network is up, and every daemon of `peers` is linked. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const status = await daemon.call('GET', '/api/network/status', Status)
  const { enabled, problem, dialing } = status
  if (!enabled) return passed('networking is off')
  if (problem !== null) return warned(problem, 'correct [network] of config.toml')
  const missing = describeMissing(status)
  if (missing.length === 0) return passed(`${dialing.length} of network.peers, all linked`)
  return warned(`not linked: ${missing.join('; ')}`, `${commandLine('peer list')} shows all daemons`)
}
export default check
