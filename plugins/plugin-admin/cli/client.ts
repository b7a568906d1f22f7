import * as v from 'valibot'

const names = v.optional(v.array(v.string()), [])
const Registered = v.looseObject({
  routes: names,
  sockets: names,
  tools: names,
  hooks: names,
  jobs: names,
  channels: names,
  providers: names,
  metrics: names,
  pages: names,
})
export type Registered = v.InferOutput<typeof Registered>

/** A plugin as the daemon lists it. */
export const Plugin = v.looseObject({
  name: v.string(),
  display_name: v.optional(v.string(), ''),
  version: v.string(),
  state: v.string(),
  source: v.optional(v.string(), ''),
  path: v.nullish(v.string()),
  enabled: v.optional(v.boolean(), true),
  requires: names,
  provides: names,
  ledger_size: v.optional(v.number(), 0),
  registered: v.optional(Registered, {}),
  reloads: v.optional(v.number(), 0),
  isolation: v.optional(v.string(), ''),
  access: v.nullish(v.string()),
  permissions: names,
  error: v.nullish(v.string()),
})
export type Plugin = v.InferOutput<typeof Plugin>
export const PluginList = v.looseObject({ plugins: v.array(Plugin), total: v.number() })
export const PluginDetail = v.looseObject({
  ...Plugin.entries,
  config_section: v.optional(v.string(), ''),
  config: v.optional(v.record(v.string(), v.unknown()), {}),
})

/** What a plugin has registered, a line each: kind and name. */
export function registeredLines(registered: Registered): readonly (readonly [kind: string, name: string])[] {
  const kinds = [
    ['route', registered.routes],
    ['socket', registered.sockets],
    ['tool', registered.tools],
    ['hook', registered.hooks],
    ['job', registered.jobs],
    ['channel', registered.channels],
    ['provider', registered.providers],
    ['metric', registered.metrics],
    ['page', registered.pages],
  ] as const
  return kinds.flatMap(([kind, names]) => names.map((name) => [kind, name] as const))
}

/** How many of each kind, such as `3 routes, 1 tool`. */
export function countRegistered(registered: Registered): string {
  const { routes, sockets, tools, hooks, jobs, channels, providers, pages } = registered
  const counts = [
    [routes.length + sockets.length, 'route'],
    [tools.length, 'tool'],
    [hooks.length, 'hook'],
    [jobs.length, 'job'],
    [channels.length, 'channel'],
    [providers.length, 'provider'],
    [pages.length, 'page'],
  ] as const
  const shown = counts.filter(([count]) => count > 0).map(([count, kind]) => `${count} ${kind}${count > 1 ? 's' : ''}`)
  return shown.join(', ') || '-'
}
