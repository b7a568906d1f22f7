import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { readableByLoader } from '../../../core/host/read-definition.ts'
import { startPluginProcess } from '../../../core/process/plugin-process.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

/** Processes that name the folder in their arguments. */
async function processesOf(folder: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))
  return lines.filter((line) => line.includes(folder))
}

it.runIf(process.platform === 'linux')('a process that is ended while it starts leaves nothing behind', async () => {
  await using home = await temporaryFolder()
  const folder = join(home.path, 'work')
  for (let attempt = 0; attempt < 4; attempt++) {
    const started = await startPluginProcess({
      readable: readableByLoader(),
      folder,
      memoryMb: 64,
      maxMessageBytes: 65_536,
      onMessage: () => undefined,
      onExit: () => undefined,
    })
    // The launcher takes about this long to name its first process.
    await pause(4 * attempt)
    started.kill()
    await started.ended
    expect(await processesOf(folder)).toEqual([])
  }
})
