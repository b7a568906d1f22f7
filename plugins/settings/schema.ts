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
    v.description('Source of a value: file and line, variable or flag. A missing key has its default.'),
  ),
  restart_required: v.pipe(v.array(v.string()), v.description('Changed keys that take effect after a restart.')),
})
export const Schema = v.record(v.string(), v.unknown())

const Value = v.pipe(v.unknown(), v.description('Of the type of the key, as in `GET /api/config/schema`.'))
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
  changed: v.pipe(v.array(v.string()), v.description('Keys whose value is in force now.')),
  restart_required: v.boolean(),
  restart_reasons: v.pipe(v.array(v.string()), v.description('Keys that take effect after a restart.')),
  hot_actions_applied: v.pipe(v.array(v.string()), v.description('Plugins that run with their new section.')),
  pending: v.pipe(
    v.array(v.string()),
    v.description('Plugins that reload after this answer; their status has the outcome.'),
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
    v.description('What overrides the key, such as a variable of the environment.'),
  ),
})
