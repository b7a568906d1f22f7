import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exits, Failure } from '../failure.ts'

/** The first line of every unit that svc wrote: no other is changed or removed. */
export const UNIT_MARK = '# Written by svc; installing the service again replaces it.'

/** What a unit says; every path is absolute. */
export interface ServiceUnit {
  readonly name: string
  readonly home: string
  readonly configFile: string | undefined
  /** How long an orderly stop may take before systemd ends the process. */
  readonly stopTimeoutSecs: number
  /** The program and its arguments up to the name of the command. */
  readonly program: readonly [string, ...string[]]
}

/** The text of a systemd user unit. It holds no secret: other programs of the user can read it. */
export function renderUnit({ name, home, configFile, stopTimeoutSecs, program }: ServiceUnit): string {
  const [node, ...rest] = program
  const config = configFile === undefined ? [] : ['--config', configFile]
  const command = [quote(node), ...[...rest, 'start', ...config].map(quoteArgument)].join(' ')
  return `${UNIT_MARK}
[Unit]
Description=svc daemon (${name})

[Service]
Type=exec
Environment=${quote(`SVC_HOME=${home}`)}
ExecStart=${command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
# A wrong command line or configuration, or a home in use: another start would fail too.
RestartPreventExitStatus=${exits.usage} ${exits.config} ${exits.inUse}
TimeoutStopSec=${stopTimeoutSecs}
UMask=0077

[Install]
WantedBy=default.target
`
}

/** One word of a unit, in which systemd reads escapes and `%` specifiers. */
function quote(text: string): string {
  if (/\p{Cc}/u.test(text))
    throw new Failure(
      exits.usage,
      `a systemd unit cannot hold the control character in ${JSON.stringify(text)}`,
      'use a path without line breaks and other control characters',
    )
  const escaped = text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('%', '%%')
  return /^[\w@%+=:,./-]+$/.test(text) ? escaped : `"${escaped}"`
}
/** In arguments systemd puts variables of the environment too, but not in the path of the program. */
function quoteArgument(text: string): string {
  return quote(text.replaceAll('$', '$$$$'))
}

/** Node and the entry point of this installation; from source with the condition that it needs. */
export function programOfThis(): readonly [string, ...string[]] {
  const here = dirname(fileURLToPath(import.meta.url))
  // Built code lies in dist/ or dist/core/, this file in core/cli/service/.
  const built = [here, dirname(here)].map((folder) => join(folder, 'svc.js')).find((file) => existsSync(file))
  return built === undefined
    ? [process.execPath, '--conditions=svc-source', join(dirname(here), 'main.ts')]
    : [process.execPath, built]
}

/** Where systemd looks for the units of a user. */
export function unitFile(name: string, env: NodeJS.ProcessEnv = process.env): string {
  const configured = env['XDG_CONFIG_HOME']
  // The base directory specification ignores a path that is not absolute.
  const folder = configured?.startsWith('/') ? configured : join(env['HOME'] || homedir(), '.config')
  return join(folder, 'systemd/user', `${name}.service`)
}

/** The name of a unit, checked. */
export function unitName(name: string | undefined): string {
  if (name === undefined) return 'svc'
  const bare = name.replace(/\.service$/, '')
  if (/^[A-Za-z0-9][\w.-]{0,63}$/.test(bare)) return bare
  throw new Failure(
    exits.usage,
    `--name: "${name}" cannot be the name of a systemd unit`,
    'use letters, digits, ".", "_" and "-", at most 64, a letter or digit first',
  )
}

/** The argument of every `svc service` command that names the unit. */
export const serviceArgs = {
  name: { type: 'string', valueHint: 'name', description: 'Name of the unit (default: svc)' },
} as const
