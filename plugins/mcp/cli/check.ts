import * as v from 'valibot'
import { commandLine, escapeControls, passed, shorten, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { path, Server } from './server.ts'

const MAX_PROBLEM_LENGTH = 300

/** Whether every MCP server works, those of integrations too. One that waits for its first use does. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { servers } = await daemon.call('GET', path, v.looseObject({ servers: v.array(Server) }))
  const broken = servers.filter(({ state }) => state === 'error' || state === 'login_required')
  const [first] = broken
  if (first) return warned(broken.map(describeServer).join('; '), adviceFor(first))
  const limited = servers.filter(({ tools }) => tools.some(({ usable }) => !usable))
  const [shown] = limited
  if (shown) {
    const names = limited.map(({ name }) => name).join(', ')
    return warned(`tools that agents cannot use: ${names}`, `${commandLine(`mcp show ${shown.name}`)} says why`)
  }
  return passed(servers.length === 0 ? 'none' : `${servers.length}, none failed`)
}
export default check

function describeServer({ name, state, error }: Server): string {
  if (state === 'login_required') return `${name} needs a login`
  return `${name}: ${shorten(escapeControls(error ?? 'failed'), MAX_PROBLEM_LENGTH)}`
}
function adviceFor({ name, state }: Server): string {
  if (state === 'login_required') return commandLine(`mcp login ${name}`)
  return `${commandLine(`mcp logs ${name}`)} says more; then ${commandLine(`mcp restart ${name}`)}`
}
