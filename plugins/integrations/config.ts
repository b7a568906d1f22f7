import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'

const { flag, integer, texts } = fields
const id = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'lower-case letters, digits and hyphens'))
const folders = (description: string) =>
  v.optional(
    v.pipe(
      v.record(id, v.array(v.pipe(v.string(), v.check(isAbsolute, 'an absolute folder')))),
      v.description(description),
      v.metadata({ opens_folders: true }),
    ),
    {},
  )
const hosts = (description: string, fallback: string[]) =>
  v.optional(v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.description(description)), fallback)

/** `[plugins.integrations]`. */
export const Settings = fileOnly(
  'says what programs of integrations may use',
  v.object({
    trusted: texts(
      'Integrations whose programs run unconfined, with the network of this machine: for those that connect to a ' +
        'database themselves.',
    ),
    read: folders('Folders (absolute) that the program of an integration may read besides its own, by its id.'),
    write: folders('Folders (absolute) that the program of an integration may write besides its own, by its id.'),
    fetch_packages: flag(
      'Programs that are not installed are fetched and run by npx or uvx, in the version the catalogue names.',
      {},
      true,
    ),
    npm_hosts: hosts('Hosts that npx fetches packages from.', ['registry.npmjs.org']),
    pypi_hosts: hosts('Hosts that uvx fetches packages from.', ['pypi.org', 'files.pythonhosted.org']),
    max_templates: integer('Files in <home>/integrations that are read.', 200, 0, 10_000),
    max_template_bytes: integer('Largest file in <home>/integrations.', 65_536, 1_024, 1_048_576),
    check_timeout_secs: integer('Seconds an integration has to answer a health check.', 10, 1, 600),
  }),
)
export type Settings = v.InferOutput<typeof Settings>

/** `[extensions]`: the health of integrations. */
export const Extensions = v.optional(
  settable(
    'says how often integrations are checked, and lets nobody in',
    v.object({
      auto_reconnect: flag('Connect again by itself when an integration does not work.', {}, true),
      reconnect_max_attempts: integer('Attempts to connect again until a person has to.', 10, 0, 1_000),
      reconnect_max_backoff_secs: integer('Longest pause between two attempts, in seconds.', 300, 1, 86_400),
      health_check_interval_secs: integer('Seconds between health checks.', 60, 5, 86_400),
    }),
  ),
  {},
)
export type Extensions = v.InferOutput<typeof Extensions>
