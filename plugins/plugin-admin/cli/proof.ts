import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Connection } from 'svc/cli'

/**
 * Runs a request with a proof that this user may write to the folder of plugins, which a daemon without an API key asks
 * for. With `--url` there is none: the home is not the one of that daemon.
 */
export async function withProof<T>(
  { location, pid }: Connection,
  work: (proof: { readonly proof?: string }) => Promise<T>,
): Promise<T> {
  if (pid === undefined) return await work({})
  const plugins = join(location.home, 'plugins')
  const proof = crypto.randomUUID()
  const file = join(plugins, `.proof-${proof}`)
  await mkdir(plugins, { recursive: true, mode: 0o700 })
  await writeFile(file, '', { flag: 'wx', mode: 0o600 })
  try {
    return await work({ proof })
  } finally {
    await rm(file, { force: true })
  }
}
