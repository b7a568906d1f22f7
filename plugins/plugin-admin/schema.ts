import * as v from 'valibot'

export const PluginParams = v.object({ name: v.string() })

const names = v.array(v.string())
/** What a plugin has registered, by name. */
export const Registered = v.object({
  routes: names,
  sockets: names,
  tools: names,
  hooks: names,
  jobs: names,
  metrics: names,
  pages: names,
})
export type Registered = v.InferOutput<typeof Registered>

export const Plugin = v.object({
  name: v.string(),
  display_name: v.string(),
  version: v.string(),
  state: v.picklist(['loaded', 'loading', 'unloading', 'failed', 'disabled']),
  source: v.string(),
  path: v.nullable(v.string()),
  enabled: v.boolean(),
  requires: names,
  provides: names,
  ledger_size: v.number(),
  registered: Registered,
  reloads: v.number(),
  error: v.nullable(v.string()),
})
export type Plugin = v.InferOutput<typeof Plugin>
export const Plugins = v.object({ plugins: v.array(Plugin), total: v.number() })
export const PluginDetail = v.object({
  ...Plugin.entries,
  ledger: v.array(v.object({ kind: v.string(), label: v.string() })),
  /** The section of the configuration, with `***` for secrets. */
  config_section: v.string(),
  config: v.record(v.string(), v.unknown()),
})
export const Reloaded = v.object({ status: v.picklist(['reloaded', 'reloading']), name: v.string() })
