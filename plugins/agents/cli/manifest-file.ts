import { readFile } from 'node:fs/promises'
import { exits, Failure, readJson } from 'svc/cli'
import { parseToml } from 'svc/internal'

/** The whole text of a file, exactly as it is. Throws `Failure` that names the file. */
export async function readExactly(file: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw new Failure(
      code === 'ENOENT' ? exits.notFound : exits.failed,
      `${file} cannot be read (${code})`,
      undefined,
      { cause: error },
    )
  }
  const text = bytes.toString('utf8')
  // A byte that is no UTF-8 would be signed as another one.
  if (!Buffer.from(text, 'utf8').equals(bytes)) throw new Failure(exits.failed, `${file} is not UTF-8 text`)
  return text
}

/** Name and version of a manifest, with the defaults for missing ones. Throws `Failure` with the name of the file. */
export function readHead(file: string, toml: string): { readonly name: string; readonly version: string } {
  const { name, version } = readToml(file, toml)
  return {
    name: typeof name === 'string' && name.trim() !== '' ? name.trim() : 'unnamed',
    version: typeof version === 'string' && version !== '' ? version : '0.1.0',
  }
}
function readToml(file: string, toml: string): Readonly<Record<string, unknown>> {
  try {
    return parseToml(toml)
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''
    throw new Failure(exits.failed, `${file} is not valid TOML: ${reason}`, undefined, { cause: error })
  }
}

/** The text of a file, or of standard input for `-`. Throws `Failure` that names the file. */
export async function readManifestFile(file: string): Promise<string> {
  if (file === '-') return await readStdin()
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw new Failure(
      code === 'ENOENT' ? exits.notFound : exits.failed,
      `${file} cannot be read (${code})`,
      'name a TOML file',
      { cause: error },
    )
  }
}
async function readStdin(): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(Buffer.from(part as Uint8Array))
  return Buffer.concat(parts).toString('utf8')
}

/** As the field of a request. A signed manifest is JSON, which no TOML file begins like; the daemon checks all of it. */
export function manifestBody(text: string): { readonly signed_manifest: unknown } | { readonly manifest_toml: string } {
  if (!text.trimStart().startsWith('{')) return { manifest_toml: text }
  try {
    return { signed_manifest: readJson(text) as unknown }
  } catch {
    return { signed_manifest: text }
  }
}
