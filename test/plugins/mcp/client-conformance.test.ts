import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import { turnPlugins } from '../plugin-test.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const suite = pathOf('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
const client = pathOf('../../fixtures/mcp/conformance-client.ts')

/** Scenarios that docs/mcp.md lists with the reason. */
const NOT_APPLICABLE = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/cross-app-access-complete-flow']
/** Scenarios whose server has no tool, or never lets it be called. */
const WITHOUT_CALL = ['initialize', 'auth/scope-retry-limit', 'auth/resource-mismatch']

let host: TestHost
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  host = await startHost({
    plugins: [...turnPlugins, 'providers/builtin', 'approvals', 'files', 'system', 'mcp'],
    memory: true,
    config: {
      // The servers of the suite are on this machine, and are added over the API.
      outbound: { allow: ['localhost', '127.0.0.1', '::1'] },
      plugins: {
        approvals: { policy: 'never' },
        mcp: { client_metadata_url: 'https://conformance-test.local/client-metadata.json' },
      },
    },
  })
  const manifest_toml = 'name = "client"\n[capabilities]\ntools = ["*"]\n'
  const { body } = await host.json('POST', '/api/agents', { manifest_toml })
  env = { ...process.env, DAEMON_URL: host.url, DAEMON_AGENT: body.agent_id }
})
afterAll(() => host[Symbol.asyncDispose]())

function run(...args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const command = ['--command', `${process.execPath} ${client}`, '--timeout', String(PATIENCE_MS)]
  return new Promise((resolve) => {
    execFile(process.execPath, [suite, 'client', ...command, ...args], { env }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    )
  })
}

/** The servers whose tool an agent has called. */
async function called(): Promise<readonly string[]> {
  const text = await (await host.fetch('/api/metrics')).text()
  const calls = text.split('\n').filter((line) => line.startsWith('svc_mcp_calls_total{') && line.includes('"ok"'))
  return calls.flatMap((line) => /server="([^"]*)"/.exec(line)?.slice(1) ?? [])
}
const serverOf = (scenario: string): string =>
  scenario
    .replace(/[^a-z0-9]+/g, '-')
    .slice(-31)
    .replace(/^-/, '')

describe('a daemon as the client of the conformance suite', () => {
  it('connects anew when and where the stream of a call says', async () => {
    const { stdout } = await run('--scenario', 'sse-retry', '--verbose')
    const checks: { id: string; status: string; details: Record<string, boolean> }[] = JSON.parse(
      stdout.slice(stdout.indexOf('[\n')),
    )
    const found = Object.fromEntries(checks.map(({ id, ...check }) => [id, check]))
    expect(found).toMatchObject({
      'client-sse-graceful-reconnect': { status: 'SUCCESS' },
      'client-sse-last-event-id': { status: 'SUCCESS' },
      // A loaded machine may be late; too early would be us.
      'client-sse-retry-timing': { details: { tooEarly: false } },
    })
    expect(await called()).toContain('sse-retry')
  })

  it.concurrent.each(['initialize', 'tools_call', 'elicitation-sep1034-client-defaults'])('passes %s', async (name) => {
    const { stderr } = await run('--scenario', name)
    expect(stderr).toContain('OVERALL: PASSED')
    if (!WITHOUT_CALL.includes(name)) expect(await called()).toContain(serverOf(name))
  })

  it.concurrent.each([
    ['auth', 14],
    ['backcompat', 2],
    ['draft', 3],
    ['extensions', 3],
  ])('passes what applies of the suite %s', async (name, count) => {
    const { stdout } = await run('--suite', name)
    const lines = [...stdout.matchAll(/^([✓✗]) (\S+): (.*)$/gm)]
    expect(lines).toHaveLength(count)
    const failed = lines.filter(([, mark]) => mark !== '✓').map(([, , scenario]) => scenario)
    expect(failed.toSorted()).toEqual(lines.flatMap(([, , each = '']) => NOT_APPLICABLE.filter((n) => n === each)))
    const uncalled = new Set([...NOT_APPLICABLE, ...WITHOUT_CALL])
    const names = lines.flatMap(([, , each = '']) => (uncalled.has(each) ? [] : [serverOf(each)]))
    expect(await called()).toEqual(expect.arrayContaining(names))
  })
})
