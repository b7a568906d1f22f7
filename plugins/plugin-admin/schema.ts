import * as v from 'valibot'
import { line, secret } from 'svc/sdk'

export const PluginParams = v.object({ name: v.string() })

const names = v.array(v.string())
/** What a plugin has registered, by name. */
export const Registered = v.object({
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
  /** `worker`: its code runs in a process of its own. */
  isolation: v.picklist(['none', 'worker']),
  /** `null`: its code could not be read. */
  access: v.nullable(v.picklist(['built-in', 'unrestricted', 'declared'])),
  permissions: names,
  error: v.nullable(v.string()),
})
export type Plugin = v.InferOutput<typeof Plugin>
export const Plugins = v.object({ plugins: v.array(Plugin), total: v.number() })
/** Where an installed plugin came from. */
export const Origin = v.object({
  source: v.string(),
  hash: v.string(),
  signed_by: v.nullable(v.string()),
  accepted_permissions: names,
  installed_at: v.string(),
  updated_at: v.string(),
})
export const PluginDetail = v.object({
  ...Plugin.entries,
  installed: v.nullable(Origin),
  ledger: v.array(v.object({ kind: v.string(), label: v.string() })),
  /** The section of the configuration, with `***` for secrets. */
  config_section: v.string(),
  config: v.record(v.string(), v.unknown()),
})
export const Followers = v.object({
  daemons: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        self: v.pipe(v.boolean(), v.description('Whether this daemon answers.')),
        state: v.pipe(
          v.picklist(['done', 'waiting', 'failed', 'refused', 'stopped', 'unknown', 'apart']),
          v.description(
            '`refused`: its own file does not permit it. `stopped`: it failed at another daemon, so this one has not ' +
              'begun. `unknown`: another version of svc wrote it. `apart`: the daemons do not share this plugin.',
          ),
        ),
        reason: v.string(),
      }),
    ),
    v.description('Empty where no other daemon can be on the database.'),
  ),
})
export const Reloaded = v.object({ status: v.picklist(['reloaded', 'reloading']), name: v.string() })

const proof = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^[0-9a-f-]{36}$/),
    v.description('Without an API key: the id in the name of a file .proof-<id> in <home>/plugins.'),
  ),
)
export const InstallRequest = v.object({
  source: v.optional(
    v.pipe(
      v.picklist(['registry', 'local', 'folder', 'archive', 'git', 'url']),
      v.description('Where it comes from. Absent: told by `path`, `url` or `name`. `local` is a folder or an archive.'),
    ),
  ),
  name: v.optional(
    v.pipe(line(300), v.description('Package of the registry, such as `svc-weather` or `svc-weather@^1`.')),
  ),
  version: v.optional(v.pipe(line(100), v.description('Version, range or tag in the registry; `latest` when absent.'))),
  registry: v.optional(v.pipe(line(100), v.description('Name of the registry: `npm`.'))),
  path: v.optional(v.pipe(line(4096), v.description('Folder, .tgz or .tar on the machine of the daemon.'))),
  url: v.optional(v.pipe(line(2048), v.description('Address of an archive; with `git`, of a repository on GitHub.'))),
  branch: v.optional(v.pipe(line(200), v.description('Branch, tag or commit of the repository.'))),
  hash: v.optional(v.pipe(line(300), v.description('The hash the archive must have: sha512-…, sha256-… or digits.'))),
  signature: v.optional(v.pipe(line(200), v.description('Ed25519 over the bytes of the archive, in base64 or hex.'))),
  update: v.optional(v.pipe(v.boolean(), v.description('Replace the plugin when it is installed.')), false),
  accept: v.optional(v.pipe(v.array(line(300)), v.description('Permissions that are accepted, by name.'))),
  accept_permissions: v.optional(v.pipe(v.boolean(), v.description('Accept every permission it asks for.')), false),
  dry_run: v.optional(
    v.pipe(v.boolean(), v.description('Answer what would be installed, and install nothing.')),
    false,
  ),
  proof,
})
export type InstallRequest = v.InferOutput<typeof InstallRequest>

export const InstallAnswer = v.object({
  installed: v.boolean(),
  status: v.picklist(['installed', 'updated', 'checked']),
  name: v.string(),
  version: v.string(),
  path: v.string(),
  restart_required: v.boolean(),
  source: v.string(),
  hash: v.string(),
  signed_by: v.nullable(v.string()),
  permissions: names,
  added_permissions: names,
  dependencies: names,
  deprecated: v.pipe(v.nullable(v.string()), v.description('What the registry says of a version that is deprecated.')),
})

/** Also that of its folder. */
export const PluginName = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'must be kebab-case, such as "my-plugin"'),
)
export const UninstallRequest = v.object({
  name: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
  force: v.optional(v.pipe(v.boolean(), v.description('Also when other plugins need it.')), false),
  delete_data: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Also delete its tables, stored values and secrets for good. For a plugin that was removed before, only these.',
      ),
    ),
    false,
  ),
  dry_run: v.optional(v.pipe(v.boolean(), v.description('Only say what would be deleted.')), false),
  proof,
})
/** What a plugin has stored. */
export const StoredData = v.object({
  tables: v.array(v.object({ name: v.string(), rows: v.number() })),
  values: v.pipe(v.number(), v.description('How many stored values.')),
  secrets: v.pipe(names, v.description('Names of the secrets in the vault.')),
})
const data = v.pipe(v.nullable(StoredData), v.description('What is deleted with `delete_data`; else null.'))
export const Removed = v.object({ removed: v.boolean(), name: v.string(), data })
export const ScaffoldRequest = v.object({
  name: v.pipe(PluginName, v.maxLength(64)),
  description: v.optional(v.pipe(v.string(), v.maxLength(300)), ''),
  kind: v.optional(v.picklist(['plugin', 'channel', 'provider']), 'plugin'),
  runtime: v.optional(v.pipe(v.string(), v.description('`node`: plugins are TypeScript.')), 'node'),
  proof,
})
export const Scaffolded = v.object({ scaffolded: v.boolean(), name: v.string(), path: v.string(), files: names })
export const DependencyRequest = v.object({ proof })
export const DependencyAnswer = v.object({ success: v.boolean(), output: v.string(), dependencies: names })

export const Registries = v.object({
  registries: v.array(
    v.object({
      name: v.string(),
      url: v.string(),
      github_repo: v.nullable(v.string()),
      plugins: v.array(
        v.object({
          name: v.string(),
          display_name: v.string(),
          installed: v.boolean(),
          version: v.string(),
          description: v.string(),
          author: v.string(),
          hooks: names,
        }),
      ),
      error: v.optional(v.string()),
    }),
  ),
})

const secretValue = secret(v.pipe(v.string(), v.maxLength(16_384)))
const extensionKind = v.picklist(['plugin', 'integration'])
export const Extension = v.object({
  name: v.string(),
  kind: extensionKind,
  display_name: v.string(),
  description: v.string(),
  icon: v.string(),
  category: v.string(),
  status: v.string(),
  tags: names,
  installed: v.boolean(),
  tool_count: v.number(),
  installed_at: v.nullable(v.string()),
})
export type Extension = v.InferOutput<typeof Extension>
export const Extensions = v.object({ extensions: v.array(Extension), total: v.number() })
export const ExtensionDetail = v.object({
  ...Extension.entries,
  required_env: names,
  has_oauth: v.boolean(),
  setup_instructions: v.string(),
  health: v.string(),
})
export const ExtensionRequest = v.object({
  ...InstallRequest.entries,
  name: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(300)),
  kind: v.optional(
    v.pipe(
      extensionKind,
      v.description(
        'What it is; by default an integration of this name, where nothing says where a plugin comes from.',
      ),
    ),
  ),
  token: v.optional(v.pipe(secretValue, v.description('Of an integration: value of the first secret it needs.'))),
  credentials: v.optional(
    v.pipe(
      secret(v.record(v.string(), secretValue)),
      v.description('Of an integration: values of its variables, by name.'),
    ),
  ),
})
export type ExtensionRequest = v.InferOutput<typeof ExtensionRequest>
export const ExtensionInstalled = v.object({ status: v.literal('installed'), name: v.string(), connected: v.boolean() })
export const ExtensionRemoved = v.object({ status: v.picklist(['uninstalled', 'checked']), name: v.string(), data })

/** What all routes that install may refuse with. */
export const installErrors = [
  'invalid_request',
  'forbidden',
  'not_found',
  'conflict',
  'payload_too_large',
  'service_unavailable',
] as const
