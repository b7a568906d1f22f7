import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'

/** Where programs are looked for. That of the daemon may hold folders anyone can write to. */
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

/**
 * Names that make a loader, an interpreter, a shell or git run someone else's code, or lead to someone's agent. Never
 * passed.
 */
const never =
  /^(LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|DYLD_.*|NODE_OPTIONS|NODE_PATH|NODE_EXTRA_CA_CERTS|PYTHONPATH|PYTHONSTARTUP|PYTHONHOME|PERL5OPT|PERL5LIB|RUBYOPT|BASH_ENV|ENV|PROMPT_COMMAND|IFS|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF|GIT_CONFIG_.*|PAGER|EDITOR|JAVA_TOOL_OPTIONS|NPM_CONFIG_.*|SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|.*_PROXY)$/i
/** Names that usually hold a secret. Passed only when approved one by one. */
export const secretive = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE|DSN|CONNECTION_STRING/i
/** Set below, and by nobody else. */
const ours: ReadonlySet<string> = new Set(['PATH', 'HOME', 'TMPDIR', 'TMP', 'TEMP'])

export interface Surroundings {
  /** Absolute folder that is its home. */
  readonly home: string
  /** Absolute folder for temporary files. */
  readonly temporary: string
  /** Folders with programs after the safe ones. */
  readonly path: readonly string[]
  /** Values on top, under names that are checked. */
  readonly extra: Readonly<Record<string, string>>
  /** Names in `extra` that may look like a secret. */
  readonly approved: readonly string[]
}

/**
 * The whole environment of a child. Nothing of the daemon's own is in it. Throws `forbidden` for a name that may not
 * be passed.
 */
export function createEnvironment({ home, temporary, path, extra, approved }: Surroundings): Record<string, string> {
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
  if (never.test(name) || ours.has(name.toUpperCase()))
    throw refused(`The environment variable ${name} is never passed to a program`)
  if (secretive.test(name) && !approved.includes(name))
    throw refused(`The environment variable ${name} looks like a secret and was not approved by name`)
}
function refused(message: string): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal('forbidden', message)
}
