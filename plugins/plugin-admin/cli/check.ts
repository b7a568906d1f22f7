import { commandLine, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { PluginList } from './client.ts'

/** Plugins of the running daemon that do not run, or whose last change failed. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('the daemon does not run')
  const { plugins, total } = await daemon.call('GET', '/api/plugins', PluginList)
  const broken = plugins.filter(({ error }) => error)
  if (broken.length === 0) return passed(`${total} loaded or disabled, none failed`)
  const reasons = broken.map(({ name, error }) => `${name}: ${error}`).join('; ')
  return warned(reasons, `correct it, then ${commandLine(`plugin reload ${broken[0]?.name}`)}`)
}
export default check
