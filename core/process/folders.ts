import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'

/** A folder that code or configuration is loaded from. */
export interface CodeFolder {
  readonly path: string
  /** What it is, for the message: a key of the configuration, or words. */
  readonly what: string
  /** Only files directly in it count: what lies in folders below may be written. */
  readonly shallow?: boolean
  /** Whatever folder is put into it is run. A workspace never lies in one, also when the home of the daemon does. */
  readonly loads?: boolean
}
/** Folders of the daemon that programs of agents are kept out of. */
export interface DaemonFolders {
  /** Secrets, the database and all workspaces: a program sees nothing of them but its own folder. */
  readonly hidden: readonly string[]
  readonly code: readonly CodeFolder[]
}
export const noFolders: DaemonFolders = { hidden: [], code: [] }

/** What a system installs: a program of an agent reads it, and writes none of it. */
const system: readonly string[] = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/nix/store',
  '/gnu/store',
]
/**
 * What programs need of /etc. The rest may hold secrets that only the rights of files keep: a daemon of root has the
 * right to read all.
 */
const settings: readonly string[] = [
  'alternatives',
  'bash.bashrc',
  'ca-certificates',
  'ca-certificates.conf',
  'crypto-policies',
  'fonts',
  'gai.conf',
  'group',
  'host.conf',
  'hosts',
  'inputrc',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'locale.alias',
  'locale.conf',
  'localtime',
  'login.defs',
  'magic',
  'magic.mime',
  'mime.types',
  'nsswitch.conf',
  'os-release',
  'passwd',
  'pki/ca-trust',
  'pki/tls/cert.pem',
  'pki/tls/certs',
  'profile',
  'protocols',
  'services',
  'shells',
  'ssl/cert.pem',
  'ssl/certs',
  'ssl/openssl.cnf',
  'terminfo',
  'timezone',
]
/** Sockets of system services, and what changes the running system. */
const live: readonly string[] = ['/proc', '/sys', '/dev', '/run', '/var/run']

/** What a program of an agent sees of the system; `link` is where a symbolic link leads. */
export function systemFolders(): readonly { readonly path: string; readonly link?: string }[] {
  return [...system, ...settings.map((name) => join('/etc', name))].flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) return []
    if (!found.isSymbolicLink()) return [{ path }]
    const link = readlinkSync(path)
    // A link into what is shown stays a link; another one is shown as what it leads to.
    const target = isAbsolute(link) ? link : join(dirname(path), link)
    return system.some((folder) => within(target, folder)) ? [{ path, link }] : existsSync(path) ? [{ path }] : []
  })
}

/** Whether a path is a folder or lies in it. */
export const within = (path: string, folder: string): boolean =>
  path === folder || folder === '/' || path.startsWith(folder + sep)

/** Where a path really leads, also when its last parts are not there yet. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')))
      throw error
    return dirname(path) === path ? path : join(realPath(dirname(path)), basename(path))
  }
}

/** Where the links lie that are followed on the way to a path, by their own real place. */
function linksTo(path: string, left = 40): readonly string[] {
  let at = '/'
  for (const [index, part] of path.split(sep).entries()) {
    const next = join(at, part)
    if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() === true && left > 0) {
      const rest = path.split(sep).slice(index + 1)
      return [next, ...linksTo(join(resolve(at, readlinkSync(next)), ...rest), left - 1)]
    }
    at = next
  }
  return []
}

/** A folder without those below it that are excluded: itself, or its entries. */
export function without(folder: string, excluded: readonly string[]): readonly string[] {
  if (excluded.some((each) => within(folder, each))) return []
  if (!excluded.some((each) => within(each, folder))) return [folder]
  return entriesOf(folder)
    .filter((entry) => !entry.isSymbolicLink())
    .flatMap((entry) => without(join(folder, entry.name), excluded))
}
/** None of a folder that the daemon's own user may not list, or that has been removed. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EACCES' || code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
  }
}

/**
 * The real path of a folder that programs of agents may read beside their own. Throws `forbidden`, with the key that
 * names it, for one that
 * would show them the daemon's secrets or sockets of the system.
 */
export function readable(folder: string, key: string, { hidden }: DaemonFolders): string {
  const path = check(folder, key)
  for (const each of hidden.map(realPath))
    if (within(path, each) || within(each, path)) throw refused(key, folder, `it holds the daemon's own ${each}`)
  return path
}

/** The same for one they may write: never where code or configuration is loaded from. */
export function writable(folder: string, key: string, folders: DaemonFolders): string {
  const path = readable(folder, key, folders)
  for (const each of [...system, '/etc', '/boot'].map(realPath))
    if (within(path, each) || within(each, path)) throw refused(key, folder, `${each} belongs to the system`)
  refuseCode(path, key, folder, folders.code)
  if (within(realPath(homedir()), path))
    throw refused(key, folder, `the settings of the daemon's own user lie in ${homedir()}`)
  return path
}

/** Throws `forbidden` when a workspace is where code or configuration is loaded from. */
export function refuseCodeWorkspace(folder: string, { code, hidden }: DaemonFolders): void {
  // What the home itself lies in, such as that of its user, names no workspace as code.
  const beside = code.filter(
    ({ path, loads }) => loads === true || !hidden.some((each) => within(realPath(each), realPath(path))),
  )
  refuseCode(realPath(folder), 'the workspace', folder, beside)
}

function refuseCode(path: string, key: string, folder: string, code: readonly CodeFolder[]): void {
  for (const { path: each, what, shallow } of code) {
    const real = realPath(each)
    // Whoever may replace a link on the way to it says what is loaded.
    if ([real, ...linksTo(each)].some((one) => within(one, path)) || (!shallow && within(path, real)))
      throw refused(key, folder, `code or configuration is loaded from ${each} (${what})`)
  }
}

function check(folder: string, key: string): string {
  if (!isAbsolute(folder)) throw new Refusal('invalid_request', `${key}: ${folder} is not an absolute folder`)
  const leadsTo = (path: string, each: string): void => {
    if (within(path, each) || within(each, path)) throw refused(key, folder, `it leads to ${each}`)
  }
  // As it is written first: some of those cannot be looked into.
  for (const each of live) leadsTo(resolve(folder), each)
  const path = realPath(folder)
  for (const each of live) leadsTo(path, realPath(each))
  return path
}

function refused(key: string, folder: string, why: string): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal('forbidden', `${key}: ${folder} may not be opened to programs of agents: ${why}`)
}
