import { fileURLToPath } from 'node:url'
import { startHost } from './host.ts'
import type { HostOptions, TestHost } from './host.ts'
import type { Json } from './json.ts'

/**
 * A host with agents that talk to the embedded model, the tools under test, and a route that calls a tool without a
 * model.
 */
export interface ToolStage extends AsyncDisposable {
  readonly host: TestHost
  /** Spawns an agent; its id. `capabilities` are TOML lines of that table. */
  spawn(name: string, capabilities?: string, more?: string): Promise<string>
  /** Calls a tool as the loop would, for an agent. */
  call(agentId: string, tool: string, args?: unknown): Promise<{ readonly text: string; readonly failed: boolean }>
  /** The same with the answer parsed; fails when the tool did. */
  json<T = Json>(agentId: string, tool: string, args?: unknown): Promise<T>
  /** Says something to an agent; its answer. */
  say(agentId: string, message: string): Promise<string>
  /** Details of the audit entries of one kind, the latest first. */
  audit(event: string): Promise<readonly string[]>
}

const base = [
  'audit',
  'usage',
  'agents',
  'sessions',
  'cluster',
  'journal',
  'providers',
  'providers/builtin',
  'chat',
  'screening',
  'files',
]

export async function openTools(
  plugins: readonly string[],
  options: Omit<HostOptions, 'plugins'> = {},
): Promise<ToolStage> {
  const toolCaller = fileURLToPath(new URL('../fixtures/tool-caller', import.meta.url))
  const host = await startHost({
    listen: false,
    memory: true,
    ...options,
    plugins: [...new Set([...base, ...plugins]), toolCaller],
  })
  const failed = host.app.daemon.plugins().filter(({ state }) => state !== 'loaded')
  if (failed.length > 0) {
    await host[Symbol.asyncDispose]()
    throw new Error(failed.map(({ name, error }) => `${name}: ${error}`).join('\n'))
  }
  const call: ToolStage['call'] = async (agentId, tool, args = {}) =>
    (await host.json('POST', `/test/tools/${tool}`, { agent_id: agentId, args })).body
  return {
    host,
    call,
    async spawn(name, capabilities = '', more = '') {
      const { status, body } = await host.json('POST', '/api/agents', {
        manifest_toml: `name = "${name}"\n${more}\n[capabilities]\ntools = ["*"]\n${capabilities}\n`,
      })
      if (status !== 201) throw new Error(`spawn answered ${status}: ${JSON.stringify(body)}`)
      return body.agent_id
    },
    async json(agentId, tool, args) {
      const { text, failed: wrong } = await call(agentId, tool, args)
      if (wrong) throw new Error(`${tool} failed: ${text}`)
      return JSON.parse(text)
    },
    async say(agentId, message) {
      const { status, body } = await host.json('POST', `/api/agents/${agentId}/message`, { message })
      if (status !== 200) throw new Error(`message answered ${status}: ${JSON.stringify(body)}`)
      return body.response
    },
    async audit(event) {
      const { body } = await host.json('GET', `/api/audit/recent?limit=100&event_type=${event}`)
      return body.entries.map((entry: { details: string }) => entry.details).toReversed()
    },
    [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
  }
}
