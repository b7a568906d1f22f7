import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runCli, startDaemon } from '../core/cli/process.ts'
import { canMount, fill } from './diskfull.ts'

describe.skipIf(!canMount)('on a full disk (needs mount)', () => {
  let disk: string
  let home: string
  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), 'svc-full-disk-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk])
    home = join(disk, 'home')
    mkdirSync(home)
  })
  afterEach(() => {
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  })

  it('a backup is refused like any other write and counts no panic, and a start names the disk', async () => {
    {
      await using daemon = await startDaemon(home)
      // Something that a backup copies and that does not fit twice.
      mkdirSync(join(home, 'data', 'workspaces', 'big'), { recursive: true })
      writeFileSync(join(home, 'data', 'workspaces', 'big', 'file'), crypto.getRandomValues(Buffer.alloc(65_536)))
      fill(join(disk, 'ballast'))
      const answer = await fetch(`${daemon.url}/api/backup`, { method: 'POST' })
      expect(await answer.json()).toMatchObject({ error: { code: 'service_unavailable' } })
      expect(answer.status).toBe(503)
      expect(await (await fetch(`${daemon.url}/api/health`)).json()).toMatchObject({ panic_count: 0 })
      daemon.kill('SIGKILL')
      await daemon.ended
    }
    fill(join(disk, 'ballast'))
    const started = await runCli(['start', '--home', home, '--port', '0'])
    expect(started.stderr).toContain(`svc: the disk of ${home} is full\n  -> free some space there, then start again`)
    expect(started.code).toBe(1)
    rmSync(join(disk, 'ballast'))
    await using again = await startDaemon(home)
    expect((await fetch(`${again.url}/api/backup`, { method: 'POST' })).status).toBe(200)
  })
})
