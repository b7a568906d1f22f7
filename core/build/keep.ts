import { existsSync } from 'node:fs'
import { link, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const KEPT_MS = 7 * 86_400_000

/**
 * Links the chunks of an old build into a new one. A daemon that runs imports some of them when a
 * feature is first used, and their names, which hold a hash of their content, never mean anything else. Those made
 * more than a week ago stay behind. `.npmignore` lists the kept ones, so that a package holds only the new build.
 */
export async function keepChunks(old: string, fresh: string, nowMs: number): Promise<void> {
  if (!existsSync(old)) return
  const files = await readdir(old, { recursive: true })
  const kept: string[] = []
  for (const file of files.filter((name) => /^(core|plugins)[\\/].*-[\w-]{8}\.js$/.test(name))) {
    const [from, to] = [join(old, file), join(fresh, file)]
    if (existsSync(to) || nowMs - (await stat(from)).mtimeMs > KEPT_MS) continue
    await mkdir(dirname(to), { recursive: true })
    await link(from, to)
    kept.push(file)
  }
  await writeFile(join(fresh, '.npmignore'), kept.map((file) => `/${file}\n`).join(''))
}
