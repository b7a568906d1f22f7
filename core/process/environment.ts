import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'

/** Port of the proxy inside the network namespace of a program. */
export const programProxyPort = 3128
/** The proxy of every program that has one, as the program sees it. */
export const programProxy = `http://127.0.0.1:${programProxyPort}`

/** Folders to search for programs. The PATH of the daemon may contain folders that anyone can write to. */
export const safePath: readonly string[] =
  process.platform === 'win32'
    ? [String.raw`C:\Windows\System32`, String.raw`C:\Windows`, String.raw`C:\Windows\System32\Wbem`]
    : [
        '/usr/local/sbin',
        '/usr/local/bin',
        '/usr/sbin',
        '/usr/bin',
        '/sbin',
        '/bin',
        ...(process.platform === 'darwin' ? ['/opt/homebrew/bin'] : []),
      ]

/** Variables that make a loader, an interpreter, a shell or git run other code, or name a socket with credentials. */
const forbiddenPatterns = [
  'LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|DYLD_.*',
  'NODE_OPTIONS|NODE_PATH|NODE_EXTRA_CA_CERTS|NPM_CONFIG_.*',
  'PYTHONPATH|PYTHONSTARTUP|PYTHONHOME|PERL5OPT|PERL5LIB|RUBYOPT|JAVA_TOOL_OPTIONS',
  'BASH_ENV|ENV|PROMPT_COMMAND|IFS|PAGER|EDITOR',
  'GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|GIT_CONFIG_.*',
  'SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|.*_PROXY',
]
const forbiddenVariables = new RegExp(`^(?:${forbiddenPatterns.join('|')})$`, 'i')
/** Names of variables that usually hold a secret. Passed only when approved by name. */
export const secretive = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE|DSN|CONNECTION_STRING/i
/** Set here only. */
const reserved: ReadonlySet<string> = new Set(['PATH', 'HOME', 'TMPDIR', 'TMP', 'TEMP'])

export interface EnvironmentOptions {
  /** Absolute path of its home folder. */
  readonly home: string
  /** Absolute path of its folder for temporary files. */
  readonly temporary: string
  /** Folders with programs after the safe ones. */
  readonly path: readonly string[]
  /** Further variables; their names are checked. */
  readonly extra: Readonly<Record<string, string>>
  /** Names in `extra` that look like a secret and are approved. */
  readonly approved: readonly string[]
}

/**
 * The whole environment of a child process. It inherits nothing of the daemon's own. Throws `forbidden` for a name that
 * may not be passed.
 */
export function createEnvironment({
  home,
  temporary,
  path,
  extra,
  approved,
}: EnvironmentOptions): Record<string, string> {
  for (const name of Object.keys(extra)) checkName(name, approved)
  return {
    LANG: 'C.UTF-8',
    LC_ALL: 'C.UTF-8',
    TERM: 'dumb',
    ...extra,
    PATH: [...safePath, ...path].join(process.platform === 'win32' ? ';' : ':'),
    HOME: home,
    TMPDIR: temporary,
    TMP: temporary,
    TEMP: temporary,
    ...(process.platform === 'win32'
      ? {
          USERPROFILE: home,
          APPDATA: home,
          LOCALAPPDATA: home,
          SYSTEMROOT: String.raw`C:\Windows`,
          WINDIR: String.raw`C:\Windows`,
          PATHEXT: '.COM;.EXE',
        }
      : {}),
  }
}

function checkName(name: string, approved: readonly string[]): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
    throw refused('The name of an environment variable is letters, digits and underscores')
  if (forbiddenVariables.test(name) || reserved.has(name.toUpperCase()))
    throw refused(`The environment variable ${name} is never passed to a program`)
  if (secretive.test(name) && !approved.includes(name))
    throw refused(`The environment variable ${name} looks like a secret and was not approved by name`)
}
function refused(message: string): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal('forbidden', message)
}
