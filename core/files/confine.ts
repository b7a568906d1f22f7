import { lstat, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'

const SYSTEM = 'path_traversal_prevention'
const SEGMENT_BYTES = 255
const NAME_BYTES = 1_024
/** Names that mean a device on some system, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)/i
const ENCODED = /%[0-9a-f]{2}/i
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/**
 * The only way from a name to a path. The name is a relative one with `/` between its segments, decoded already; the
 * path lies below `root` and goes through no link. Throws `invalid_request` for a name that is none and `forbidden` for
 * one that leads elsewhere: a link, a hard-linked file, a device, a pipe, or anything at or below a `denied` path. What
 * it names need not exist. Between this check and the use of the path another process may swap a folder for a link;
 * `openConfined` and `inFolder` have no such gap.
 */
export async function confine(
  root: string,
  name: string,
  options: { readonly denied?: readonly string[] } = {},
): Promise<string> {
  const segments = checkFileName(name)
  const base = await realpath(root)
  const path = join(base, ...segments)
  for (const denied of options.denied ?? []) {
    const real = await realpath(denied).catch((error: unknown) => {
      if (isMissing(error)) return denied
      throw error
    })
    if (path === real || path.startsWith(real + sep)) throw forbidden(name)
  }
  let current = base
  for (const [index, segment] of segments.entries()) {
    current = join(current, segment)
    let stat
    try {
      stat = await lstat(current)
    } catch (error) {
      // The rest does not exist yet, so there is nothing in it to lead elsewhere.
      if (isMissing(error)) return path
      if (hasCode(error, 'ENOTDIR')) throw forbidden(name)
      throw error
    }
    const last = index === segments.length - 1
    if (!(stat.isDirectory() || (last && stat.isFile() && stat.nlink === 1))) throw forbidden(name)
  }
  return path
}

/** The segments of a name. Throws `invalid_request` for a name that is none, as `confine` says. */
export function checkFileName(name: string): string[] {
  const refuse = (why: string): never => {
    enforced(SYSTEM)
    throw new Refusal('invalid_request', `The name of the file ${why}`)
  }
  if (name === '') refuse('is empty')
  if (Buffer.byteLength(name) > NAME_BYTES) refuse(`is longer than ${NAME_BYTES} bytes`)
  if (CONTROL.test(name)) refuse('has control characters')
  if (!name.isWellFormed()) refuse('is not valid Unicode')
  if (name.normalize('NFC') !== name) refuse('is not in Unicode form NFC')
  if (name.includes('\\')) refuse('has a backslash')
  if (name.startsWith('/') || name.startsWith('~') || /^[a-z]:\//i.test(name)) refuse('must be relative')
  // Decoded once on the way in; a name that another decoding would change is meant to slip past a check.
  if (ENCODED.test(name)) refuse('is encoded twice')
  const segments = name.split('/')
  for (const segment of segments) {
    if (segment === '') refuse('has an empty part')
    if (segment === '.' || segment === '..') refuse('has a "." or ".." part')
    if (/[. ]$/.test(segment)) refuse('has a part that ends in a dot or a space')
    if (segment.includes(':')) refuse('has a colon')
    if (DEVICE.test(segment)) refuse('is the name of a device')
    if (Buffer.byteLength(segment) > SEGMENT_BYTES) refuse(`has a part longer than ${SEGMENT_BYTES} bytes`)
  }
  return segments
}

/**
 * The path of an entry of a folder, for a name that comes from a row or a message. Throws `invalid_request` for a name
 * that is none, and `forbidden` for one with several parts.
 */
export function entryPath(folder: string, name: string): string {
  const [entry = '', ...more] = checkFileName(name)
  if (more.length > 0) throw forbidden(name)
  return join(folder, entry)
}

/** The folder a name stands in, and its last part. */
export function splitName(name: string): readonly [folder: string, last: string] {
  const at = name.lastIndexOf('/')
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)]
}

export function forbidden(name: string): Refusal {
  enforced(SYSTEM)
  return new Refusal('forbidden', `"${name}" leads out of the folder or is not a plain file`)
}
export const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT')
