import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { SecretBytes } from '../storage/secret-bytes.ts'
import { secretive } from './environment.ts'

/**
 * Secrets taken out of the environment. Every process of the same user can read `/proc/<pid>/environ` as long as this
 * process runs, even after a variable was deleted (security facts 1.6). So secrets are kept here and overwritten there.
 * Like the environment itself this exists once per process.
 */
const taken = new Map<string, SecretBytes>()
let refusal: string | undefined

/** Names of variables that hold a path rather than a secret; programs of the operator need them. */
const pathName = /_(?:FILE|PATH|DIR|SOCK)$|PASSFILE$|^XAUTHORITY$/i
/** A URL with a password. */
const credentials = /:\/\/[^/\s:@]*:[^/\s@]+@/

/** Whether a variable is a secret: by its name, as for the environment of programs, or by a password in a URL. */
function isSecret(name: string, value: string): boolean {
  return (secretive.test(name) && !pathName.test(name)) || credentials.test(value)
}

/** The value of a variable at the start of the process, even if it was taken out since. Do not keep the text. */
export function readVariable(name: string): string | undefined {
  return taken.get(name)?.toText() ?? process.env[name]
}
/**
 * The same for code that was installed: no variable of svc itself or of its database, and none that the configuration
 * names as its own secret.
 */
export function readSharedVariable(name: string): string | undefined {
  return isOwnVariable(name) || reserved.has(name) ? undefined : readVariable(name)
}
/** Those of svc and of its database, such as the key of the vault. */
export const isOwnVariable = (name: string): boolean => /^(?:SVC_|PG[A-Z]+$)/i.test(name)
let reserved: ReadonlySet<string> = new Set()
/** All variables as they were at the start of the process. Do not keep the record. */
export function readVariables(): Readonly<Record<string, string | undefined>> {
  return { ...process.env, ...Object.fromEntries([...taken].map(([name, value]) => [name, value.toText()])) }
}

export function forgetVariable(name: string): void {
  delete process.env[name]
}

/** Runs code of the operator that reads variables from `process.env`, which is this record meanwhile. */
export async function withVariables<T>(
  variables: Readonly<Record<string, string | undefined>>,
  work: () => Promise<T>,
): Promise<T> {
  real ??= process.env
  readers++
  process.env = { ...variables }
  try {
    return await work()
  } finally {
    if (--readers === 0) {
      process.env = real
      real = undefined
    }
  }
}
let real: NodeJS.ProcessEnv | undefined
let readers = 0

/**
 * Takes every secret and every variable in `named` out of the environment. Afterwards only `readVariable` returns
 * them: neither this process nor a program it starts finds them. `exposedVariables` lists what could not be
 * overwritten.
 */
export function takeSecrets(named: ReadonlySet<string> = new Set()): void {
  reserved = named
  const names = new Set<string>()
  for (const [name, value = ''] of Object.entries(process.env)) {
    if (value === '' || !(isSecret(name, value) || named.has(name))) continue
    names.add(name)
    taken.set(name, new SecretBytes(value))
    delete process.env[name]
  }
  if (names.size === 0) return
  try {
    overwrite(names)
  } catch (error) {
    refusal = error instanceof Error ? ('code' in error ? String(error.code) : error.message) : 'unknown reason'
  }
}

/**
 * Names of the secrets that can still be read in the environment the process was started with, and why they could not
 * be overwritten.
 */
export function exposedVariables(): { readonly names: readonly string[]; readonly because: string | undefined } {
  if (process.platform !== 'linux') return { names: [...taken.keys()], because: refusal }
  const names = [...entries(readBlock())].flatMap(({ name, value }) =>
    value !== '' && (taken.has(name) || isSecret(name, value)) ? [name] : [],
  )
  return { names, because: refusal }
}

/** Empty where the file does not exist or cannot be read: then no other process of the user can read it either. */
function readBlock(): Buffer {
  try {
    return readFileSync('/proc/self/environ')
  } catch {
    return Buffer.alloc(0) /* other processes cannot read it either */
  }
}

/** Overwrites only the bytes of the values: the C library no longer reads deleted variables there. */
function overwrite(names: ReadonlySet<string>): void {
  if (process.platform !== 'linux') throw new Error('this system does not let a process change its initial environment')
  const block = readBlock()
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // Fields 50 and 51 of proc_pid_stat(5). Field 2, in brackets, may contain spaces.
  const [start = 0, end = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(47, 49)
    .map(Number)
  if (start === 0 || end - start !== block.byteLength)
    throw new Error('the address of the environment in memory is unknown')
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    for (const { name, from, to } of entries(block))
      if (names.has(name)) writeSync(memory, Buffer.alloc(to - from), 0, to - from, start + from)
  } finally {
    closeSync(memory)
  }
}

/** The variables of a block; `from` and `to` are the offsets of the value in it. */
function* entries(
  block: Buffer,
): Generator<{ readonly name: string; readonly value: string; readonly from: number; readonly to: number }> {
  for (let at = 0; at < block.byteLength;) {
    const found = block.indexOf(0, at)
    const to = found < 0 ? block.byteLength : found
    const sign = block.indexOf(0x3d, at)
    if (sign > at && sign < to)
      yield { name: block.toString('utf8', at, sign), value: block.toString('utf8', sign + 1, to), from: sign + 1, to }
    at = to + 1
  }
}
