import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { root } from '../../architecture/sources.ts'
import { turnPlugins } from '../plugin-test.ts'

export const handPlugins = [
  ...turnPlugins,
  'approvals',
  'clock',
  'files',
  'goals',
  'kv',
  'mcp',
  'queue',
  'result-delivery',
  'schedules',
  'shell',
  'skills',
  'system',
  'tasks',
  'wasm',
  'web',
  'workflows',
]

/** A daemon with what hands need. */
export const startHands = (options: Partial<PluginTestOptions> = {}): Promise<PluginTest> =>
  startPlugin({ plugin: join(root, 'plugins/hands'), builtIns: handPlugins, ...options })

/** A definition that lacks nothing. */
export const definition = (id: string, more = ''): string => `
id = "${id}"
name = "Tides"
description = "Watches the tides"
tools = ["kv_get", "kv_set", "kv_list"]

[[settings]]
key = "harbour"
label = "Harbour"
setting_type = "select"
default = "hamburg"
options = [{ value = "hamburg", label = "Hamburg" }, { value = "husum" }]

[[settings]]
key = "loud"
label = "Loud"
setting_type = "toggle"

[[settings]]
key = "token"
label = "Token"
setting_type = "text"
env_var = "TIDES_TOKEN"

[agent]
name = "${id}-agent"
system_prompt = "You watch the tides."
heartbeat_interval_secs = 600

[[dashboard.metrics]]
label = "Height"
memory_key = "tides.height"
format = "number"

[[dashboard.metrics]]
label = "Said"
memory_key = "tides.said"
${more}`

/** Writes a hand into the home of a daemon. */
export async function writeHand(
  { home }: Pick<PluginTest, 'home'>,
  id: string,
  toml = definition(id),
  skill?: string,
): Promise<string> {
  const folder = join(home, 'hands', id)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'HAND.toml'), toml)
  if (skill !== undefined) await writeFile(join(folder, 'SKILL.md'), skill)
  return folder
}
