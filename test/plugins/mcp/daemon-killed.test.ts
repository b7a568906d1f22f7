import { mkdtemp, readdir, readFile, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startDaemon } from '../../support/daemon.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from './servers.ts'

it('kill -9 of the daemon leaves no program of a server of the file, and none that it started', async () => {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'svc-mcp-killed-')))
  const args = JSON.stringify([fixture, '--fault=child'])
  await writeFile(
    join(home, 'config.toml'),
    `[[mcp_servers]]\nname = "one"\nlazy = false\ncommand = "${process.execPath}"\nargs = ${args}\n`,
  )
  await using daemon = await startDaemon({ home })
  const programs = async (): Promise<readonly string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
    const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
    return pids.filter((_, at) => folders[at] === join(home, 'mcp', 'one'))
  }
  // Its child is a session of its own and ignores SIGTERM.
  await eventually(async () => {
    const { servers } = await (await fetch(`${daemon.url}/api/mcp/servers`)).json()
    expect(servers[0].state).toBe('connected')
    const lines = await Promise.all((await programs()).map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8')))
    expect(lines).toContainEqual(expect.stringContaining('setInterval'))
  })
  process.kill(daemon.pid, 'SIGKILL')
  await eventually(async () => expect(await programs()).toEqual([]))
  await daemon.kill()
  await rm(home, { recursive: true, force: true })
}, 30_000)
