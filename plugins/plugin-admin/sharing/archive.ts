import { hash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'

/** A .tgz of a folder, as `npm pack` makes it: for a plugin that was installed from a folder. */
export async function packFolder(folder: string): Promise<Uint8Array> {
  const { create } = await import('tar')
  const packed = create({ gzip: true, cwd: folder, portable: true, prefix: 'package' }, ['.'])
  return await buffer(packed)
}

/** In hexadecimal digits. */
export const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes)
