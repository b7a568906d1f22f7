import { defineRoute, Refusal } from 'svc/sdk'
import type { AppliedChange, Configuration, Daemon } from 'svc/internal'
import type { AnyRoute } from 'svc/sdk'
import type * as v from 'valibot'
import type { Audit } from '../audit/contract.ts'
import type { ChannelAccounts } from '../channels/contract.ts'
import type { Inference } from '../providers/contract.ts'
import { Changes, Config, Schema, Setting, SettingChanged } from './schema.ts'

export interface ConfigRoutesDeps {
  readonly configuration: Configuration
  readonly daemon: Daemon
  readonly audit: Audit
  readonly inference: () => Inference | undefined
  readonly channels: () => ChannelAccounts | undefined
}

/** The configuration of the running daemon (Interface 4.5). */
export function configRoutes(deps: ConfigRoutesDeps): readonly AnyRoute[] {
  const { configuration, audit } = deps
  return [
    readRoute(deps),
    schemaRoute(configuration),
    setRoute(configuration, audit),
    reloadRoute(configuration, audit),
  ]
}

function readRoute({ configuration, daemon, inference, channels }: ConfigRoutesDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/config',
    summary: 'Read the configuration without its secrets',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: Config,
    async handle() {
      const { dataDir, listenAddr, apiKeySet } = daemon.config()
      // The value in force, as in the status: it is derived from the available keys when none is set.
      const chosen = await inference()?.defaultModel()
      return {
        data_dir: dataDir,
        default_provider: chosen?.provider ?? null,
        default_model: chosen?.model ?? null,
        listen_addr: listenAddr,
        api_key_set: apiKeySet,
        channels_configured: [...((await channels()?.configured()) ?? [])],
        mcp_servers: names(configuration.read()['mcp_servers']),
        config: { ...configuration.read() },
        sources: Object.fromEntries(configuration.sources()),
        restart_required: [...configuration.restart()],
      }
    },
  })
}

function schemaRoute(configuration: Configuration): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/config/schema',
    summary: 'JSON Schema of the configuration file',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: Schema,
    description:
      'Draft-07, with the sections of the plugins that are loaded. `secret` marks what is never shown, `restart` ' +
      'what holds after a restart, `file_only` what is changed in the file and not over the network.',
    handle: () => configuration.schema(),
  })
}

function setRoute(configuration: Configuration, audit: Audit): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/config/set',
    summary: 'Change one key of the configuration file',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    description:
      'The value is checked, written into config.toml with every comment kept, and holds at once where the ' +
      'schema does not say `restart`.',
    body: Setting,
    returns: SettingChanged,
    errors: ['forbidden', 'conflict'],
    async handle({ body }) {
      const key = body.key ?? body.path
      if (key === undefined)
        throw new Refusal('invalid_request', 'key: is missing', {
          details: { issues: [{ path: 'key', message: 'is missing' }] },
        })
      if (body.value === undefined)
        throw new Refusal('invalid_request', 'value: is missing', {
          details: { issues: [{ path: 'value', message: 'is missing' }] },
        })
      await configuration.check(key, body.value)
      // Before the file: an untraceable change must not happen. The value may be a secret; the key is enough.
      await audit.write({
        event: 'config_change',
        details: `configuration: change of ${key} requested`,
        change: {
          before: { [key]: configuration.shown(key) },
          after: { [key]: configuration.shown(key, body.value) },
        },
      })
      const applied = await configuration.set(key, body.value)
      const source = configuration.sources().get(key)
      const overridden = source !== undefined && !/config\.toml(:\d+)?$/.test(source)
      return { ...toChanges(applied), key, path: key, overridden_by: overridden ? source : null }
    },
  })
}

function reloadRoute(configuration: Configuration, audit: Audit): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/config/reload',
    summary: 'Read the configuration again',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    returns: Changes,
    description:
      'All or nothing: a file with a mistake changes nothing, and the answer says file, line, key and what was ' +
      'expected.',
    async handle() {
      await audit.write({ event: 'config_change', details: 'configuration: reload requested' })
      return toChanges(await configuration.reload())
    },
  })
}

function toChanges({
  changed,
  restart,
  reloaded,
  later,
  failed,
  warnings,
}: AppliedChange): v.InferOutput<typeof Changes> {
  return {
    status: failed.length > 0 || restart.length > 0 ? 'partial' : changed.length === 0 ? 'no_changes' : 'applied',
    changed: [...changed],
    restart_required: restart.length > 0,
    restart_reasons: [...restart],
    hot_actions_applied: [...reloaded],
    pending: [...later],
    failed: failed.map((one) => ({ ...one })),
    warnings: [...warnings],
  }
}
/** Names of tables, or of a list of tables that have one. */
function names(value: unknown): string[] {
  if (Array.isArray(value))
    return value.flatMap((item: unknown) => (isTable(item) && typeof item['name'] === 'string' ? [item['name']] : []))
  return isTable(value) ? Object.entries(value).flatMap(([name, item]) => (isTable(item) ? [name] : [])) : []
}
const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
