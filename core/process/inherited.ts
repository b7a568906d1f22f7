import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { SecretBytes } from '../storage/secret-bytes.ts'
import { secretive } from './environment.ts'

/**
 * The environment the process was started with. Whoever runs as the same user can read it as long as the process
 * lives, in
 * `/proc/<pid>/environ`, also after a variable was deleted (security facts 1.6). So what is secret in it is taken
 * out: kept here, and
 * overwritten there. Like the environment itself this exists once for a process.
 */
const taken = new Map<string, SecretBytes>()
let refusal: string | undefined

/** Names that say where something is and not what: programs of the daemon's own user find their way by them. */
const whereabouts = /_(?:FILE|PATH|DIR|SOCK)$|PASSFILE$|^XAUTHORITY$/i
/** An address with a password in it. */
const credentials = /:\/\/[^/\s:@]*:[^/\s@]+@/

/**
 * Whether a variable is a secret, as the door to programs judges by its name, or by an address with a password as its
 * value.
 */
function isSecret(name: string, value: string): boolean {
  return (secretive.test(name) && !whereabouts.test(name)) || credentials.test(value)
}

/**
 * What a variable held when the process was started, also when it was taken out since. The text is for immediate use.
 */
export function readVariable(name: string): string | undefined {
  return taken.get(name)?.toText() ?? process.env[name]
}
/** All variables as the process was started with them. The record is for immediate use. */
export function readVariables(): Readonly<Record<string, string | undefined>> {
  return { ...process.env, ...Object.fromEntries([...taken].map(([name, value]) => [name, value.toText()])) }
}

/** Runs code of the operator's own that looks for variables in `process.env`, which is this record meanwhile. */
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
 * Takes every secret out of the environment, and the variables that are named, whatever they are called. From then
 * on neither this
 * process nor a program it starts finds them there; `readVariable` does. What could not be overwritten is in
 * `exposedVariables`.
 */
export function takeSecrets(named: ReadonlySet<string> = new Set()): void {
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
 * Secrets that can still be read in the environment the process was started with, by name, and why they could not be
 * overwritten.
 */
export function exposedVariables(): { readonly names: readonly string[]; readonly because: string | undefined } {
  if (process.platform !== 'linux') return { names: [...taken.keys()], because: refusal }
  const names = [...entries(readBlock())].flatMap(({ name, value }) =>
    value !== '' && (taken.has(name) || isSecret(name, value)) ? [name] : [],
  )
  return { names, because: refusal }
}

/** Empty where there is no such file, or this process may not read its own: then no other of its user may. */
function readBlock(): Buffer {
  try {
    return readFileSync('/proc/self/environ')
  } catch {
    return Buffer.alloc(0) /* which is what others see of it */
  }
}

/** The C library looks there no more for what was deleted, so nothing but these bytes is touched. */
function overwrite(names: ReadonlySet<string>): void {
  if (process.platform !== 'linux') throw new Error('this system lets no process change what it was started with')
  const block = readBlock()
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // Fields 50 and 51 of proc_pid_stat(5); the second one is a name with anything in it, in brackets.
  const [start = 0, end = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(47, 49)
    .map(Number)
  if (start === 0 || end - start !== block.byteLength)
    throw new Error('where the environment stands in memory is not told')
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    for (const { name, from, to } of entries(block))
      if (names.has(name)) writeSync(memory, Buffer.alloc(to - from), 0, to - from, start + from)
  } finally {
    closeSync(memory)
  }
}

/** The variables of a block; `from` and `to` are where the bytes of the value stand in it. */
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
