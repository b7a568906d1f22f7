import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const read = async (file: string): Promise<string> => {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    return '' /* not a checkout, or a ref that is packed */
  }
}

/** The commit a source tree is at, or `unknown`. Read from the files, so that a build needs no git. */
export async function gitSha(root: string): Promise<string> {
  const head = await read(join(root, '.git', 'HEAD'))
  if (!head.startsWith('ref: ')) return head || 'unknown'
  const ref = head.slice(5)
  const loose = await read(join(root, '.git', ref))
  if (loose) return loose
  const packed = await read(join(root, '.git', 'packed-refs'))
  return (
    packed
      .split('\n')
      .find((line) => line.endsWith(` ${ref}`))
      ?.slice(0, 40) ?? 'unknown'
  )
}
