import * as v from 'valibot'
import { line } from 'svc/sdk'

const HAND_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/
export const HandId = v.pipe(v.string(), v.regex(HAND_ID, 'Invalid hand ID'))
export const HandParams = v.object({ hand_id: HandId })
export const InstanceParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid instance ID'), v.toLowerCase()) })
export const InstanceName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9 _-]{0,47}$/, 'must be 1 to 48 letters, digits, spaces, "-" and "_"'),
)
const text = v.string()
const orNull = v.nullable(text)
const flag = v.boolean()
const count = v.number()

const VALUE = 'each value in the body must be a text of 4096 characters at most, or true or false'
/** By key of the setting. */
export const Values = v.record(
  v.pipe(text, v.maxLength(64, 'a key in the body has 64 characters at most')),
  v.union([v.pipe(text, v.maxLength(4096, VALUE)), flag], VALUE),
)
export type Values = v.InferOutput<typeof Values>

const Requirement = v.looseObject({ key: text, label: text, satisfied: flag, optional: flag })
const Row = v.object({
  id: text,
  name: text,
  description: text,
  category: text,
  icon: text,
  tools: v.array(text),
  requirements_met: flag,
  active: flag,
  degraded: flag,
  requirements: v.array(Requirement),
  dashboard_metrics: count,
  has_settings: flag,
  settings_count: count,
  source: v.picklist(['bundled', 'local']),
})
const Problem = v.object({ name: text, path: text, line: v.nullable(count), key: orNull, error: text })
export const HandList = v.object({ hands: v.array(Row), total: count, problems: v.array(Problem) })
const Setting = v.looseObject({
  key: text,
  label: text,
  setting_type: text,
  required: v.pipe(flag, v.description('Without a value it has nothing to do.')),
  secret: v.pipe(flag, v.description('Its value is in the vault, and shown as `***`.')),
})
const settings = v.array(Setting)
export const HandDetail = v.looseObject({
  ...Row.entries,
  server_platform: text,
  agent: v.looseObject({ name: text, provider: text, model: text }),
  roles: v.pipe(
    v.array(v.object({ role: text, coordinator: flag, description: text, tools: v.array(text) })),
    v.description('Of a hand of several agents.'),
  ),
  wakes: v.pipe(
    v.looseObject({ every_secs: v.optional(count), cron: v.optional(text), tz: v.optional(text) }),
    v.description('When an instance works, unless a setting says otherwise.'),
  ),
  dashboard: v.array(v.object({ label: text, memory_key: text, format: text })),
  settings,
  ignored_keys: v.pipe(v.array(text), v.description('Keys of its file that have no effect.')),
  nearest_keys: v.pipe(
    v.record(text, text),
    v.description('For those of them that look misspelt, the key that is most likely meant.'),
  ),
})
export const Instance = v.object({
  instance_id: text,
  hand_id: text,
  instance_name: text,
  status: v.pipe(text, v.description('`Active`, `Paused`, or `Error: ` and why.')),
  agent_id: text,
  agent_name: text,
  agents: v.pipe(
    v.array(v.object({ role: text, agent_id: text, agent_name: text, coordinator: flag })),
    v.description('All of its agents. The coordinator comes first: the schedule wakes it, and it asks the others.'),
  ),
  config: Values,
  lacks: v.pipe(
    v.array(text),
    v.description('Settings that need a value, and what is not there: it works without, and less well or in vain.'),
  ),
  activated_at: text,
  updated_at: text,
  schedule_id: text,
  next_run: orNull,
  last_run: orNull,
})
export const InstanceList = v.object({ instances: v.array(Instance), total: count })
export const InstallHand = v.object({
  toml_content: v.optional(v.pipe(text, v.maxLength(262_144))),
  skill_content: v.optional(v.pipe(text, v.maxLength(65_536))),
  source: v.optional(v.pipe(line(4096), v.description('Absolute path of a folder with a HAND.toml.'))),
  slug: v.optional(v.pipe(HandId, v.description('A bundled hand, which is copied to be edited.'))),
  update: v.optional(flag, false),
})
export const Installed = v.object({
  id: text,
  name: text,
  description: text,
  category: text,
  path: text,
  warnings: v.pipe(
    v.array(v.object({ severity: v.picklist(['critical', 'warning', 'info']), message: text })),
    v.description('What to look at before it is activated.'),
  ),
})
export const Removed = v.object({ status: v.literal('removed'), hand_id: text })
export const ActivateHand = v.optional(
  v.object({ config: v.optional(Values, {}), instance_name: v.optional(InstanceName) }),
  {},
)
export const Dependencies = v.object({
  hand_id: text,
  requirements_met: flag,
  active: flag,
  degraded: flag,
  server_platform: text,
  requirements: v.array(Requirement),
})
export const InstalledDependencies = v.object({
  hand_id: text,
  results: v.array(v.looseObject({ key: text, status: text, message: text })),
  requirements_met: flag,
  requirements: v.array(Requirement),
})
export const InstanceQuery = v.object({
  instance: v.optional(v.pipe(text, v.description('Name or id of the instance, where there are several.'))),
})
export const SettingsView = v.object({ hand_id: text, settings, current_values: Values })
export const SettingsSaved = v.object({ status: v.literal('ok'), hand_id: text, instance_id: text, config: Values })
export const Changed = v.object({ status: text, instance_id: text })
export const Stats = v.object({
  instance_id: text,
  hand_id: text,
  status: text,
  agent_id: text,
  last_run: v.nullable(text),
  next_run: v.nullable(text),
  metrics: v.record(text, v.object({ value: v.nullable(v.union([count, text])), format: text })),
})
export const Browser = v.looseObject({ active: flag })
