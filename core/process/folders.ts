import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'

/** A folder that code or configuration is loaded from. */
export interface CodeFolder {
  readonly path: string
  /** What it is, for error messages: a key of the configuration, or words. */
  readonly what: string
  /** Only files directly in it are protected: subfolders may be written to. */
  readonly shallow?: boolean
  /** Every folder put into it is loaded as code. A workspace is never inside it, even if the home of the daemon is. */
  readonly loads?: boolean
}
/** Folders of the daemon that untrusted programs may not read or change. */
export interface DaemonFolders {
  /** Secrets, the database and all workspaces: a program sees only its own folder in them. */
  readonly hidden: readonly string[]
  readonly code: readonly CodeFolder[]
}
export const noFolders: DaemonFolders = { hidden: [], code: [] }

/** Folders of installed software, which untrusted programs may read and not write. */
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
 * Entries of /etc that programs need. The others may hold secrets that only file permissions protect, and a daemon that
 * runs as root may read everything.
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
/** Sockets of system services, and files that change the running system. */
const live: readonly string[] = ['/proc', '/sys', '/dev', '/run', '/var/run']

/** System folders that untrusted programs see; `link` is the target of a symbolic link. */
export function systemFolders(): readonly { readonly path: string; readonly link?: string }[] {
  return [...system, ...settings.map((name) => `/etc/${name}`)].flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (!found) return []
    if (!found.isSymbolicLink()) return [{ path }]
    const link = readlinkSync(path)
    // A link into a visible folder stays a link; another link is replaced by its target.
    const target = isAbsolute(link) ? link : join(dirname(path), link)
    return system.some((folder) => within(target, folder)) ? [{ path, link }] : existsSync(path) ? [{ path }] : []
  })
}

/** Whether a path is this folder or inside it. */
export const within = (path: string, folder: string): boolean =>
  path === folder || folder === '/' || path.startsWith(folder + sep)

/** The real path, also when its last parts do not exist yet. */
export function realPath(path: string): string {
  try {
    // Asks the system once; the other form looks at every part of the path in JavaScript.
    return realpathSync.native(path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')))
      throw error
    return dirname(path) === path ? path : join(realPath(dirname(path)), basename(path))
  }
}

const isName = /^(?!\.{1,2}$)[^/\\]+$/
/** Real paths of the symbolic links that are followed on the way to a path. */
function linksTo(path: string, left = 40): readonly string[] {
  let at = '/'
  for (const [index, part] of path.split(sep).entries()) {
    if (part === '') continue
    // Normalizing every path makes `join` hot enough for the optimizing compiler, which costs 5 MB.
    const next = isName.test(part) ? `${at === sep ? '' : at}${sep}${part}` : join(at, part)
    if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() === true && left > 0) {
      const rest = path.split(sep).slice(index + 1)
      return [next, ...linksTo(join(resolve(at, readlinkSync(next)), ...rest), left - 1)]
    }
    at = next
  }
  return []
}

/** A folder without the excluded folders below it: the folder itself, or its remaining entries. */
export function without(folder: string, excluded: readonly string[]): readonly string[] {
  if (excluded.some((each) => within(folder, each))) return []
  if (!excluded.some((each) => within(each, folder))) return [folder]
  return entriesOf(folder)
    .filter((entry) => !entry.isSymbolicLink())
    .flatMap((entry) => without(join(folder, entry.name), excluded))
}
/** Empty for a folder that the user of the daemon may not list, or that no longer exists. */
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
 * The real path of a further folder that untrusted programs may read. Throws `forbidden`, with the key that names it,
 * for one that would show them secrets of the daemon or sockets of the system.
 */
export function readable(folder: string, key: string, { hidden }: DaemonFolders): string {
  const path = check(folder, key)
  for (const each of hidden.map(realPath))
    if (within(path, each) || within(each, path)) throw refused(key, folder, `it contains the daemon's own ${each}`)
  return path
}

/** Like `readable`, for a folder they may write: never one that code or configuration is loaded from. */
export function writable(folder: string, key: string, folders: DaemonFolders): string {
  const path = readable(folder, key, folders)
  for (const each of [...system, '/etc', '/boot'].map(realPath))
    if (within(path, each) || within(each, path)) throw refused(key, folder, `${each} belongs to the system`)
  refuseCode(path, key, folder, folders.code)
  if (within(realPath(homedir()), path))
    throw refused(key, folder, `${homedir()} holds the settings of the user of the daemon`)
  return path
}

/** Throws `forbidden` for a workspace where code or configuration is loaded from. */
export function refuseCodeWorkspace(folder: string, { code, hidden }: DaemonFolders): void {
  // A folder that contains the home, such as that of its user, does not make every workspace code.
  const beside = code.filter(
    ({ path, loads }) => loads === true || !hidden.some((each) => within(realPath(each), realPath(path))),
  )
  refuseCode(realPath(folder), 'the workspace', folder, beside)
}

function refuseCode(path: string, key: string, folder: string, code: readonly CodeFolder[]): void {
  for (const { path: each, what, shallow } of code) {
    const real = realPath(each)
    // Whoever may replace a link on the way to it decides what is loaded.
    if ([real, ...linksTo(each)].some((one) => within(one, path)) || (!shallow && within(path, real)))
      throw refused(key, folder, `code or configuration is loaded from ${each} (${what})`)
  }
}

function check(folder: string, key: string): string {
  if (!isAbsolute(folder)) throw new Refusal('invalid_request', `${key}: ${folder} is not an absolute folder`)
  const refuseWithin = (path: string, each: string): void => {
    if (within(path, each) || within(each, path)) throw refused(key, folder, `it leads to ${each}`)
  }
  // The path as written comes first: some of these folders cannot be read.
  for (const each of live) refuseWithin(resolve(folder), each)
  const path = realPath(folder)
  for (const each of live) refuseWithin(path, realPath(each))
  return path
}

function refused(key: string, folder: string, why: string): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal('forbidden', `${key}: ${folder} may not be opened to untrusted programs: ${why}`)
}
