import { escapeControls, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { BrowserList } from './client.ts'

/** Whether agents can open a browser. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { chromium, problem, sessions } = await daemon.call('GET', '/api/browser/sessions', BrowserList)
  if (problem !== null)
    return warned(escapeControls(problem), 'until then the tools browser_* of agents fail; everything else works')
  return passed(escapeControls(`${chromium ?? ''}, ${sessions.length} open`))
}
export default check
