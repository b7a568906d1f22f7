import type { PluginTest } from 'svc/testing'
import type { Json } from '../support/json.ts'

/** The built-in plugins that a turn of an agent needs. */
export const turnPlugins = [
  'audit',
  'usage',
  'agents',
  'sessions',
  'cluster',
  'journal',
  'providers',
  'chat',
  'screening',
]

/** Calls a tool for an agent. */
export async function callTool(
  test: PluginTest,
  agentId: string,
  tool: string,
  args: unknown = {},
): Promise<{ readonly text: string; readonly failed: boolean }> {
  const { text, failed } = await test.callTool(tool, args, { agentId })
  return { text, failed }
}

/** The same with the answer parsed; rejects when the tool failed. */
export async function callToolJson(test: PluginTest, agentId: string, tool: string, args?: unknown): Promise<Json> {
  const { text, failed } = await callTool(test, agentId, tool, args)
  if (failed) throw new Error(`${tool} failed: ${text}`)
  return JSON.parse(text)
}

/** Has the model of an agent call a tool in a turn; its answer is then what the tool returned. */
export const useTool = (test: PluginTest, agentId: string, tool: string, args = {}): Promise<string> =>
  test.say(agentId, `Use ${tool}`, { calls: [{ tool, args }] })

/** Details of the audit entries of one kind, the latest first. */
export async function auditDetails(test: PluginTest, event: string): Promise<readonly string[]> {
  const { body } = await test.request<Json>('GET', `/api/audit/recent?limit=100&event_type=${event}`)
  return body.entries.map((entry: { details: string }) => entry.details).toReversed()
}
