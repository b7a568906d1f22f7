import * as v from 'valibot'

export const Config = v.object({
  data_dir: v.string(),
  default_provider: v.nullable(v.string()),
  default_model: v.nullable(v.string()),
  listen_addr: v.string(),
  api_key_set: v.boolean(),
  channels_configured: v.array(v.string()),
  mcp_servers: v.array(v.string()),
  config: v.pipe(v.record(v.string(), v.unknown()), v.description('Everything by section; secrets are ***.')),
  sources: v.pipe(
    v.record(v.string(), v.string()),
    v.description('Where a value comes from: file and line, variable or flag. A key that is missing has its default.'),
  ),
  restart_required: v.pipe(v.array(v.string()), v.description('Keys that were changed and hold after a restart.')),
})
export const Schema = v.record(v.string(), v.unknown())

const Value = v.pipe(v.unknown(), v.description('Of the type the key has; `GET /api/config/schema` tells it.'))
/** `path` is another name of `key`. */
export const Setting = v.pipe(
  v.object({
    key: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(256),
        v.description('Dotted key, such as rate_limit.tokens_per_minute.'),
      ),
    ),
    path: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Another name of `key`.'))),
    value: v.optional(Value),
  }),
)
export const Changes = v.object({
  status: v.picklist(['applied', 'partial', 'no_changes']),
  changed: v.pipe(v.array(v.string()), v.description('Keys whose value holds from now on.')),
  restart_required: v.boolean(),
  restart_reasons: v.pipe(v.array(v.string()), v.description('Keys that hold after a restart.')),
  hot_actions_applied: v.pipe(v.array(v.string()), v.description('Plugins that run with their new section.')),
  pending: v.pipe(
    v.array(v.string()),
    v.description('Plugins that take theirs when this has been answered; their status tells how it went.'),
  ),
  failed: v.array(v.object({ plugin: v.string(), reason: v.string() })),
  warnings: v.array(v.string()),
})
export const SettingChanged = v.object({
  ...Changes.entries,
  key: v.string(),
  path: v.string(),
  overridden_by: v.pipe(
    v.nullable(v.string()),
    v.description('What sets the key too and wins, such as a variable of the environment.'),
  ),
})
